# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.modeling`; the modules whose tests have another name::

- initializers: conformance/test_workspace_replay, conformance/optimizers/test_optimizers
- parameter_info: conformance/optimizers/test_optimizers
- predictor_net: caffe2/definitions/test_refusals, conformance/test_workspace_replay
- net_modifier: caffe2/optimizer/test_gradient_clipping
"""
