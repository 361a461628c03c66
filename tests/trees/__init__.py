# SPDX-License-Identifier: Apache-2.0
"""Tests of bridge.trees.

- nodes, walk: test_flatten
"""
