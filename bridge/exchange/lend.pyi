# SPDX-License-Identifier: Apache-2.0
from typing import Any

from typing_extensions import disjoint_base

from bridge.c10.tensor_impl import TensorImpl

def to_lend(x: Any, copy: bool | None) -> TensorImpl: ...
def left_to_copy(x: Any, impl: TensorImpl, copy: bool | None) -> bool | None: ...
def row_major(impl: TensorImpl, copy: bool | None, alignment: int = 1) -> TensorImpl: ...
def lent_capsule(impl: TensorImpl, stream: Any = None) -> Any: ...

@disjoint_base
class Lent:
    def __init__(self, impl: TensorImpl) -> None: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
