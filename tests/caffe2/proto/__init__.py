# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.proto`; of these modules the names of the files do not show it::

- caffe2_descriptor: test_caffe2_pb2
"""
