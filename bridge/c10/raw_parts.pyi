# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any

from typing_extensions import disjoint_base

from bridge.c10.device import Device
from bridge.c10.tensor_impl import TensorImpl
from bridge.c10.type_meta import TypeMeta
from bridge.typing import BufferLike, Dims

@disjoint_base
class ByteView:
    def __buffer__(self, flags: int, /) -> memoryview: ...

def byte_view(impl: TensorImpl) -> ByteView: ...
def from_buffer(
    buffer: BufferLike, sizes: Dims, dtype: TypeMeta, misaligned: bool = False
) -> TensorImpl: ...
def from_items(sizes: Dims, dtype: TypeMeta, items: Sequence[Any]) -> TensorImpl: ...
def sized(sizes: Dims, dtype: TypeMeta | None, device: Device) -> TensorImpl: ...
def items_of(impl: TensorImpl) -> list[Any]: ...
