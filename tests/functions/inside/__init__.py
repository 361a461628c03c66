# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.functions.inside`; the modules whose tests have another name::

- cupy, eager, jax, numpy, paddle, tensorflow, torch, zeros:
  functions/test_wrapping_pairs,
  functions/outside/test_jax, functions/test_wrapping
"""
