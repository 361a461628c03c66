# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.tf`; the modules whose tests have another name::

- element_types: test_golden, test_read_tensor_proto, test_write_tensor_proto
- message: test_live, test_live_strings
- shape_proto: test_shape, test_read_tensor_proto_refused
- *: test_golden, test_live, test_live_strings
"""
