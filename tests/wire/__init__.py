# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.wire`; the modules whose tests have another name::

- encoding, varints: caffe2/blobs/test_serialize, caffe2/blobs/test_serialize_reading,
  tf/test_write_tensor_proto
- decoding: caffe2/blobs/test_serialize_reading, caffe2/blobs/test_message,
  tf/test_read_tensor_proto_refused
"""
