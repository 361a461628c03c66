# SPDX-License-Identifier: Apache-2.0
"""Quantized tensors, as a blob holds them and as they are fetched."""

from __future__ import annotations

from collections import namedtuple

from bridge.c10 import TypeMeta
from bridge.caffe2.tensor.tensor import Tensor


class Int8Tensor(namedtuple("Int8Tensor", ["data", "scale", "zero_point"])):
    """A fetched quantized tensor, where real = scale * (data - zero_point).

    data: a NumPy array of int32 or uint8. scale, zero_point: numbers.
    """

    __slots__ = ()


class Int8TensorCPU:
    """A quantized tensor as a blob holds it: the tensor `t`, its `scale` and its `zero_point`.

    Follows int8::Int8TensorCPU, caffe2/core/tensor_int8.h, PyTorch 1.8.1.

    >>> from bridge.caffe2.blobs.int8 import Int8TensorCPU
    >>> quantized = Int8TensorCPU()
    >>> quantized.t.sizes(), quantized.scale, quantized.zero_point
    (ArrayRef([0]), 1.0, 0)
    """

    __slots__ = ("scale", "t", "zero_point")

    t: Tensor
    scale: float
    zero_point: int

    def __init__(self, t: Tensor | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        self.t = Tensor("cpu") if t is None else t
        self.scale = scale
        self.zero_point = zero_point


TypeMeta.Register(Int8TensorCPU)
