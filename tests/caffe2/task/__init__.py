# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.task`; the modules whose tests have another name::

- blocks: test_builder_blocks
- setup_nets: test_task_group
"""
