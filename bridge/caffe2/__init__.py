# SPDX-License-Identifier: Apache-2.0
"""The Caffe2-style API: caffe2.Tensor, a memory manager, and a workspace of named blobs."""

from __future__ import annotations

from bridge.at.tensor import Tensor as _AtTensor
from bridge.c10.flags import FLAGS
from bridge.c10.type_meta import set_tensor_class as _set_tensor_class
from bridge.caffe2 import core, workspace
from bridge.caffe2.blob import Blob
from bridge.caffe2.factories import (
    ReinitializeAndCopyFrom,
    ReinitializeTensor,
    TensorCPUFromValues,
    empty,
)
from bridge.caffe2.operator import Operator
from bridge.caffe2.registry import register_operator
from bridge.caffe2.tensor import Tensor

__all__ = [
    "FLAGS",
    "Blob",
    "Operator",
    "ReinitializeAndCopyFrom",
    "ReinitializeTensor",
    "Tensor",
    "TensorCPUFromValues",
    "core",
    "empty",
    "register_operator",
    "workspace",
]

_set_tensor_class(Tensor, _AtTensor)
