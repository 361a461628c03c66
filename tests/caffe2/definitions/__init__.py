# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.definitions`; the modules whose tests have another name::

- blob_reference, create_operator, python_functions, scope: test_refusals,
  conformance/test_workspace_replay
- dyndep: caffe2/test_install
- operator_types: caffe2/execution/test_registry
- tracebacks: caffe2/workspaces/test_immediate
- *: test_refusals
"""
