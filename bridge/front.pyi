# SPDX-License-Identifier: Apache-2.0
from typing import Any, Literal, overload

import cupy
import jax
import numpy as np
import tensorflow as tf
import torch

from bridge.at.tensor import Tensor as AtTensor
from bridge.caffe2.tensor import Tensor as Caffe2Tensor
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
def to_torch(
    x: TensorLike, *, copy: bool | None = None, writable: bool = False
) -> torch.Tensor: ...
def to_numpy(x: TensorLike, *, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
def to_jax(x: TensorLike, *, copy: bool | None = None) -> jax.Array: ...
def to_tensorflow(x: TensorLike, *, copy: bool | None = None) -> tf.Tensor: ...
def to_cupy(x: TensorLike, *, copy: bool | None = None) -> cupy.ndarray: ...
@overload
def convert(x: TensorLike, to: Literal["torch"], *, copy: bool | None = None) -> torch.Tensor: ...
@overload
def convert(
    x: TensorLike, to: Literal["numpy"], *, copy: bool | None = None
) -> np.ndarray[Any, Any]: ...
@overload
def convert(x: TensorLike, to: Literal["at"], *, copy: bool | None = None) -> AtTensor: ...
@overload
def convert(x: TensorLike, to: Literal["caffe2"], *, copy: bool | None = None) -> Caffe2Tensor: ...
@overload
def convert(x: TensorLike, to: str, *, copy: bool | None = None) -> Any: ...
