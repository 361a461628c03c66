# SPDX-License-Identifier: Apache-2.0
"""Caffe2's messages of ``metanet.proto``: the model in a file of `predictor_exporter`."""

from bridge.caffe2.proto import caffe2_pb2 as _caffe2_pb2  # noqa: F401 - metanet.proto imports it
from bridge.caffe2.proto.message_classes import define as _define
from bridge.caffe2.proto.metanet_descriptor import SERIALIZED as _SERIALIZED

_define(globals(), _SERIALIZED)
