# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.brew`; the modules whose tests have another name::

- conditions: caffe2/core/test_control_ops_util
- helpers, normalization, plain_operators, products, training: conformance/test_workspace_replay
"""
