# SPDX-License-Identifier: Apache-2.0
"""Tests of bridge.trees.

- errors: test_convert
- nodes, walk: test_flatten
"""
