# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.see`; the modules whose tests have another name::

- array_memory, capsule_memory, find_memory, impl_memory, internals, owner_links, producer_memory,
  sharers, tensor_memory, torch_memory: test_explain
- type_names: test_audit_log
"""
