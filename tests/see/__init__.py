# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.see`; the modules whose tests have another name::

- capsule_memory, find_memory, impl_memory, internals, producer_memory, sharers,
  tensor_memory, torch_memory: test_explain
- type_names: test_contexts_log
"""
