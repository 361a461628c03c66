# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from bridge.at.tensor import Tensor
from bridge.c10.options import TensorOptions
from bridge.typing import Deleter, DeviceLike, Dims, OptionsLike, TensorLike, TypeLike

def page_locked(keywords: dict[str, Any], pinned: bool, caller: str) -> bool: ...
def split(args: tuple[Any, ...], caller: str) -> tuple[Any, Any]: ...
def sizes_of(sizes: Dims | int, caller: str) -> list[int]: ...
def empty(
    *dims: int | Dims | OptionsLike | None,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor: ...
def zeros(
    *dims: int | Dims | OptionsLike | None,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor: ...
def ones(
    *dims: int | Dims | OptionsLike | None,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor: ...
def full(
    size: int | Dims,
    fill_value: complex,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor: ...
def empty_like(
    source: TensorLike,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    **keywords: Any,
) -> Tensor: ...
def zeros_like(
    source: TensorLike,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    **keywords: Any,
) -> Tensor: ...
def ones_like(
    source: TensorLike,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    **keywords: Any,
) -> Tensor: ...
def full_like(
    source: TensorLike,
    fill_value: complex,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    **keywords: Any,
) -> Tensor: ...
def empty_strided(
    size: Dims,
    stride: Dims,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    pinned_memory: bool = False,
    **keywords: Any,
) -> Tensor: ...
def from_blob(
    source: int | TensorLike,
    sizes: Dims,
    strides: Dims | OptionsLike | None = None,
    options: OptionsLike | None = None,
    deleter: Deleter | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor: ...
def resolved(
    options: OptionsLike | None = None,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
) -> TensorOptions: ...
