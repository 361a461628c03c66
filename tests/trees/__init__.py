# SPDX-License-Identifier: Apache-2.0
"""Tests of bridge.trees.

- leaf_errors: test_convert
- nodes, walk: test_flatten
"""
