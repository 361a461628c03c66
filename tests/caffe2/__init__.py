# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2`; the modules whose tests have another name::

- __main__: test_install
- c_extension, utils, workspace: conformance/test_workspace_replay
- cnn: conformance/models/test_models
- net_builder: caffe2/task/test_builder_blocks
"""
