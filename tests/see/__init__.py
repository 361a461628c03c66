# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.see`; of these modules the names of the files do not show it::

- inside, memory, naming, read, read_capsule, read_torch, sharing: test_explain
- record: test_audit, test_no_copy
- *: test_contexts, test_no_copy
"""
