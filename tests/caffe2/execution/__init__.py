# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.execution`; the modules whose tests have another name::

- definition, operator_core: test_operator
- runnable_net: caffe2/workspaces/test_named_nets, test_operator_failure
- declaration, function_core: test_function_operator
- tape, taped_operator: test_function_operator
- net_function: caffe2/modules/test_net_module
"""
