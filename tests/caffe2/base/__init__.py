# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.base`; the modules whose tests have another name::

- created_nets: caffe2/execution/test_observers
- data_types, messages: caffe2/definitions/test_argument_values
- message_text: conformance/test_workspace_replay
- device_option: caffe2/workspaces/test_feed_fetch_devices
- hardware: caffe2/definitions/test_engines
- names: caffe2/workspaces/test_named_blobs
"""
