# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from bridge.at.tensor import Tensor
from bridge.c10.options import TensorOptions
from bridge.c10.tensor_impl import TensorImpl
from bridge.typing import DeviceLike, IndexLike, TypeLike
from bridge.wrapper import Wrapper

_W = TypeVar("_W", bound=Wrapper)

def set_wrap(wrap: Callable[[TensorImpl], Tensor]) -> None: ...
def copy_(tensor: _W, src: Any) -> _W: ...
def assign(view: Wrapper, value: Any) -> None: ...
def advanced_index(tensor: Wrapper, key: IndexLike) -> Tensor: ...
def advanced_assign(tensor: Wrapper, key: IndexLike, value: Any) -> None: ...
def fill_(tensor: _W, value: Any) -> _W: ...
def zero_(tensor: _W) -> _W: ...
def to(
    tensor: Tensor,
    *args: Wrapper | torch.Tensor | TensorOptions | TypeLike | DeviceLike | bool | None,
    copy: bool = False,
    non_blocking: bool = False,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    other: Wrapper | torch.Tensor | None = None,
) -> Tensor: ...
def write_back(impl: TensorImpl, tensor: torch.Tensor) -> None: ...
