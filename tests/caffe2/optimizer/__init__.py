# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.optimizer`; the modules whose tests have another name::

- adagrad, adaptive, builders, gradient_descent, learning_rates, optimizer_base:
  conformance/optimizers/test_optimizers
"""
