# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2`; the modules whose tests have another name::

- __main__, dyndep: test_install
- brew, c_extension, core, model_helper, scope, utils, workspace:
  conformance/test_workspace_replay
- initializers, optimizer, parameter_info: conformance/optimizers/test_optimizers
- mobile_exporter: caffe2/definitions/test_refusals
"""
