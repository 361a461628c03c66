# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.core`; the modules whose tests have another name::

- net_picture: shell/test_draw
- cloning, device_copies, net, plan, steps:
  caffe2/definitions/test_refusals, conformance/test_workspace_replay
"""
