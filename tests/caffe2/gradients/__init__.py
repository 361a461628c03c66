# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.gradients`; the modules whose tests have another name::

- backward_pass, gradient_slice: test_gradient_registry, conformance/gradients/test_gradients
- maker, patterns, sums: test_numeric, conformance/gradients/test_gradients
- control_flow: caffe2/operators/control/test_scopes
- version_records: test_gradient_registry
- declared: caffe2/execution/test_function_operator
- *: test_caffe2_faults, test_numeric
"""
