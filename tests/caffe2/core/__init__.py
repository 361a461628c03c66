# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.core`; the modules whose tests have another name::

- net_picture: shell/test_draw
- net_observing: caffe2/execution/test_observers
- blob_devices, cloning, device_copies, net, net_rewriting, plan, steps:
  caffe2/definitions/test_refusals, conformance/test_workspace_replay
"""
