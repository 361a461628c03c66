# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.brew`; the modules whose tests have another name::

- helpers, normalization, products: conformance/test_workspace_replay
- plain_operators: conformance/test_workspace_replay, caffe2/core/test_control_ops_util
"""
