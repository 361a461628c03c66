# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.proto`; the modules whose tests have another name::

- caffe2_descriptor, message_classes: test_caffe2_pb2
"""
