# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.models`; the modules whose tests have another name::

- brew_control: test_control_operators
- brew_helpers, brew_normalization, brew_operators, brew_products, brew_training, initializers,
  model_helper: conformance/test_workspace_replay
- iteration, optimizer_adagrad, optimizer_adam, optimizer_adaptive, optimizer_base,
  optimizer_builders, optimizer_ftrl, optimizer_gradient_descent, optimizer_half, optimizer_rates,
  parameter_info: conformance/optimizers/test_optimizers
"""
