# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.core``: what operators, nets and plans are made with."""

from __future__ import annotations

from bridge.caffe2.arguments import MakeArgument
from bridge.caffe2.blob_reference import BlobReference, ScopedBlobReference, ScopedName
from bridge.caffe2.create_operator import CreateOperator, DeviceOption
from bridge.caffe2.data_type import DataType
from bridge.caffe2.scope import DeviceScope, NameScope

__all__ = [
    "BlobReference",
    "CreateOperator",
    "DataType",
    "DeviceOption",
    "DeviceScope",
    "MakeArgument",
    "NameScope",
    "ScopedBlobReference",
    "ScopedName",
]
