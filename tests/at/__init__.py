# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.at`; of these modules the names of the files do not show it::

- memory, write_guard: test_tensor_readonly
- torch_factories: test_factories
- torch_names: test_torch_ops
- values: test_data
"""
