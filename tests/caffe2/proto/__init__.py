# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.proto`; the modules whose tests have another name::

- caffe2_descriptor, message_classes: test_caffe2_pb2
- hsm_descriptor, metanet_descriptor, metanet_pb2, predictor_consts_descriptor,
  predictor_consts_pb2: test_hsm_pb2
"""
