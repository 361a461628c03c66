# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable, Iterable
from typing import Any, Literal, overload

import cupy
import jax
import numpy as np
import tensorflow as tf
import torch

from bridge.at.tensor import Tensor as AtTensor
from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor
from bridge.see.contexts import Audit, NoCopy
from bridge.see.explain import Explanation, Explanations
from bridge.typing import ArrayLike, DeviceLike, TensorLike, TypeLike

def from_dlpack(
    x: TensorLike, *, device: DeviceLike | None = None, copy: bool | None = None
) -> AtTensor: ...
def asarray(
    x: ArrayLike,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> AtTensor: ...
@overload
def to_torch(
    x: TensorLike, *, copy: bool | None = None, writable: bool = False, readonly: bool = False
) -> torch.Tensor: ...
@overload
def to_torch(
    x: Any, *, copy: bool | None = None, writable: bool = False, readonly: bool = False
) -> Any: ...
@overload
def to_numpy(x: TensorLike, *, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
@overload
def to_numpy(x: Any, *, copy: bool | None = None) -> Any: ...
@overload
def to_jax(x: TensorLike, *, copy: bool | None = None) -> jax.Array: ...
@overload
def to_jax(x: Any, *, copy: bool | None = None) -> Any: ...
@overload
def to_tensorflow(x: TensorLike, *, copy: bool | None = None) -> tf.Tensor: ...
@overload
def to_tensorflow(x: Any, *, copy: bool | None = None) -> Any: ...
@overload
def to_cupy(x: TensorLike, *, copy: bool | None = None) -> cupy.ndarray: ...
@overload
def to_cupy(x: Any, *, copy: bool | None = None) -> Any: ...
@overload
def convert(
    x: TensorLike,
    to: Literal["torch"],
    *,
    like: None = None,
    copy: bool | None = None,
    writable: bool = False,
    readonly: bool = False,
) -> torch.Tensor: ...
@overload
def convert(
    x: TensorLike,
    to: Literal["numpy"],
    *,
    like: None = None,
    copy: bool | None = None,
    writable: bool = False,
    readonly: bool = False,
) -> np.ndarray[Any, Any]: ...
@overload
def convert(
    x: TensorLike,
    to: Literal["at"],
    *,
    like: None = None,
    copy: bool | None = None,
    writable: bool = False,
    readonly: bool = False,
) -> AtTensor: ...
@overload
def convert(
    x: TensorLike,
    to: Literal["caffe2"],
    *,
    like: None = None,
    copy: bool | None = None,
    writable: bool = False,
    readonly: bool = False,
) -> Caffe2Tensor: ...
@overload
def convert(
    x: Any,
    to: str,
    *,
    like: None = None,
    copy: bool | None = None,
    writable: bool = False,
    readonly: bool = False,
) -> Any: ...
@overload
def convert(
    x: Any,
    to: None = None,
    *,
    like: Any,
    copy: bool | None = None,
    writable: bool = False,
    readonly: bool = False,
) -> Any: ...
def register(
    name: str,
    *,
    types: Iterable[type | str] = (),
    importer: Callable[[Any], Any] | None = None,
    exporter: Callable[[AtTensor], Any] | None = None,
) -> None: ...
@overload
def explain(x: object, /) -> Explanation: ...
@overload
def explain(x: object, y: object, /, *more: object) -> Explanations: ...
def shares_memory(a: object, b: object) -> bool: ...
def audit() -> Audit: ...
def no_copy() -> NoCopy: ...
