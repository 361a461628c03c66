# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.nets`; the modules whose tests have another name::

- net_picture: shell/test_draw
- name_prefix: caffe2/tasks/test_builder_blocks
- record_columns, record_containers, record_field: caffe2/test_schema
- net_observing: caffe2/execution/test_observers
- blob_devices, cloning, device_copies, execution_step, net, net_rewriting, mobile_export, plan,
  predictor_net: caffe2/definitions/test_refusals, conformance/test_workspace_replay
"""
