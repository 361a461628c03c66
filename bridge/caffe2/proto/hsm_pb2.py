# SPDX-License-Identifier: Apache-2.0
"""Caffe2's messages of ``hsm.proto``: trees of words, for hierarchical softmax."""

from bridge.caffe2.proto.hsm_descriptor import SERIALIZED as _SERIALIZED
from bridge.caffe2.proto.message_classes import define as _define

_define(globals(), _SERIALIZED)
