# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.functions`; the modules whose tests have another name::

- call, crossing, outcome, tensors, traced: test_wrapping, outside/test_jax, outside/test_tensorflow
"""
