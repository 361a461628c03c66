# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.task`; the modules whose tests have another name::

- setup_nets: test_task_group
"""
