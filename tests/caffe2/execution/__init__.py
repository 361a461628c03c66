# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.execution`; of these modules the names of the files do not show it::

- definition, operator_core, python_operator: test_operator
- output_backup: test_operator_failure
- plans, runnable_net, running: test_nets
- torch_io: test_operator_memory
"""
