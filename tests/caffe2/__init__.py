# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2`; the modules whose tests have another name::

- __main__, dyndep: test_install
- brew, c_extension, core, model_helper, scope, utils, workspace:
  conformance/test_workspace_replay
- initializers, optimizer, parameter_info: conformance/optimizers/test_optimizers
- cnn: conformance/models/test_models
- net_builder: caffe2/tasks/test_builder_blocks
- session: caffe2/tasks/test_session
- task: caffe2/tasks/test_task
- context: caffe2/models/test_context
- control_ops_util: caffe2/models/test_control_operators
- modifier_context, normalizer_context, optimizer_context, regularizer_context:
  caffe2/models/test_modifiers
- net_modifier: test_gradient_clipping
- parameter_sharing: caffe2/models/test_parameter_sharing
- predictor_constants, predictor_py_utils, serde: test_predictor_exporter
- mobile_exporter: caffe2/definitions/test_refusals
"""
