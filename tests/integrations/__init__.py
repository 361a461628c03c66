# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.integrations`, with the packages themselves.

Files elsewhere that have a module's tests:

- torch_schemas: test_torch_operators
"""
