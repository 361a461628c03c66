# SPDX-License-Identifier: Apache-2.0
"""Caffe2's messages (``caffe2.proto`` and others), for the protobuf library.

``from bridge.caffe2.proto import caffe2_pb2`` loads protobuf; importing this package does not.
"""
