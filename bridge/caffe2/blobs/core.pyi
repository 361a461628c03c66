# SPDX-License-Identifier: Apache-2.0
import weakref
from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from bridge.c10 import TypeMeta
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.blob_tensor import BlobTensor
from bridge.caffe2.tensor.tensor import Tensor

@disjoint_base
class BlobCore:
    _tensor: Tensor | None
    _own: bool
    _object: Any
    _meta: TypeMeta | None
    _handle: weakref.ref[BlobTensor] | None

def put(blob: BlobCore, value: Any) -> None: ...
def set_put_by_type(function: Callable[[Blob, Any], None]) -> None: ...
