# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.wire`; of these modules the names of the files do not show it::

- encoding, packing, varints_out: caffe2/blobs/test_serialize, tf/test_write_tensor_proto
- fields, payload, varints: caffe2/blobs/test_deserialize, caffe2/blobs/test_message,
  tf/test_read_tensor_proto_refused
"""
