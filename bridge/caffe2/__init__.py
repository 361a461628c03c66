# SPDX-License-Identifier: Apache-2.0
"""The Caffe2-style API: caffe2.Tensor, a memory manager, and a workspace of named blobs."""

from __future__ import annotations

from bridge.c10.flags import FLAGS
from bridge.caffe2 import workspace
from bridge.caffe2.base.lazy import lazily
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.install import install
from bridge.caffe2.tensor.factories import (
    ReinitializeAndCopyFrom,
    ReinitializeTensor,
    TensorCPUFromValues,
    empty,
)
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2 import core
    from bridge.caffe2.execution.operator import Operator
    from bridge.caffe2.execution.registry import register_operator
    from bridge.caffe2.files.blob_files import load_checkpoint, save_checkpoint

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
    "install",
    "load_checkpoint",
    "register_operator",
    "save_checkpoint",
    "workspace",
]

# Not needed by who has tensors and blobs only.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.core": "core",
        "bridge.caffe2.execution.operator": "Operator",
        "bridge.caffe2.execution.registry": "register_operator",
        "bridge.caffe2.files.blob_files": "load_checkpoint save_checkpoint",
    },
)
