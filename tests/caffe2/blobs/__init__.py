# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.blobs`; the modules whose tests have another name::

- copies, put, put_by_type, feed, replace: test_blob, caffe2/workspaces/test_feed_fetch
- backup: caffe2/execution/test_operator_failure
- core, int8, objects: test_blob
- dlpack_tensor: caffe2/operators/control/test_python_operator
- read_tensor: test_serialize_reading
- string_arrays: caffe2/workspaces/test_feed_fetch_strings
- torch_io: caffe2/execution/test_operator_memory
- tensor_proto: conformance/test_workspace_replay
- write_tensor: test_serialize
"""
