# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.gradients`; the modules whose tests have another name::

- gradient_slice: test_backward_pass, conformance/gradients/test_gradients
- maker, sums: test_numeric, conformance/gradients/test_gradients
- patterns: caffe2/execution/test_function_operator, conformance/gradients/test_gradients
- control_flow: caffe2/operators/control/test_scopes
- *: test_caffe2_faults, test_numeric
"""
