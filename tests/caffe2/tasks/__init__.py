# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.tasks`; the modules whose tests have another name::

- blocks, net_blocks, operations: test_builder_blocks
- cluster, setup_nets, task_outputs: test_task
"""
