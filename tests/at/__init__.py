# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.at`; the modules whose tests have another name::

- element_writes: test_indexing
- conversion: test_tensor_metadata, test_tensor_views, test_factories
- readonly_guard: test_tensor_readonly, test_readonly_torch
- storage_ops: test_python_values, c10/test_storage
- torch_call, torch_names: test_torch_ops
- torch_factories: test_factories
"""
