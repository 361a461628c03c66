# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.at.array_api`; the modules whose tests have another name::

- creation, dtypes, elementwise, fft, linalg, manipulation, running, searching,
  statistics: test_against_numpy, test_namespace
- *: test_against_numpy, test_namespace
"""
