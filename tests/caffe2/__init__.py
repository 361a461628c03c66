# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2`; of these modules the names of the files do not show it::

- __main__, dyndep: test_install
- brew, c_extension, core, model_helper, scope, utils, workspace:
  conformance/test_workspace_replay
- initializers, optimizer, parameter_info: conformance/optimizers/test_optimizers
- mobile_exporter: caffe2/definitions/test_refusals
"""
