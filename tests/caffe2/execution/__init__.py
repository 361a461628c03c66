# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.execution`; the modules whose tests have another name::

- definition, instantiate, operator_core: test_operator
- output_backup: test_operator_failure
- nets, plans, runnable_net, running: caffe2/workspaces/test_named_nets, test_operator_failure
- torch_io: test_operator_memory
- declaration, function_core, torch_state: test_function_operator
- blob_tape, tape, taped_operator: test_function_operator
- net_function: caffe2/modules/test_net_module
"""
