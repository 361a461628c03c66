# SPDX-License-Identifier: Apache-2.0
"""Caffe2's messages of ``predictor_consts.proto``: names of blobs and nets in exported files."""

from bridge.caffe2.proto.message_classes import define as _define
from bridge.caffe2.proto.predictor_consts_descriptor import SERIALIZED as _SERIALIZED

_define(globals(), _SERIALIZED)
