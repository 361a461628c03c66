# SPDX-License-Identifier: Apache-2.0
import weakref
from typing import Any

from typing_extensions import disjoint_base

from bridge.c10 import TypeMeta
from bridge.caffe2.tensor.tensor import Tensor

@disjoint_base
class BlobCore:
    _tensor: Tensor | None
    _own: bool
    _object: Any
    _meta: TypeMeta | None
    _handle: weakref.ref[Any] | None
    def _contents(self) -> Any: ...
    def _live_handle(self) -> Any: ...
    def _set_tensor(self, tensor: Tensor, own: bool) -> None: ...
    def _set_string(self, value: bytes | str) -> None: ...
    def _set_object(self, value: Any, meta: TypeMeta | None) -> None: ...
    def _replace(self, tensor: Tensor) -> None: ...
    def _describe(self, name: Any) -> str: ...
    def _describe_contents(self) -> str: ...

@disjoint_base
class CurrentBlobs:
    blobs: dict[str, Any]
    device_scopes: int
