# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.optimizer`; the modules whose tests have another name::

- adagrad, adam, adaptive, builders, ftrl, gradient_descent, half_precision, learning_rates,
  optimizer_base: conformance/optimizers/test_optimizers
"""
