# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.shared`, which is `bridge.share`, `bridge.attach` and `bridge.Shared`.

- tensors: test_segment, test_value
"""
