# SPDX-License-Identifier: Apache-2.0
"""A source and what is expected of it; for each target that follows from the rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tests.helpers.dlpack_consumer import compact_strides

SAME, SHARED, COPIED = "the same object", "shared", "copied"

# Types of few bits, of which every element takes a byte in NumPy.
NARROW = ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")
TORCH_LACKS = (
    *NARROW,
    *("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"),
    *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"),
)
JAX_LACKS = ("complex32", "float6_e2m3fn", "float6_e3m2fn", "int1", "uint1")
TENSORFLOW_LACKS = (
    *("complex32", "float6_e2m3fn", "float6_e3m2fn", "int1", "uint1"),
    *("float8_e3m4", "float8_e4m3", "float8_e8m0fnu"),
)
# TensorFlow has them, its DLPack does not; it shares them with NumPy, and copies them from there.
TENSORFLOW_COPIES = (
    *NARROW,
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
)
WIDE = ("int64", "uint64", "float64", "complex128")


@dataclasses.dataclass(frozen=True)
class Case:
    """One source.

    `values` makes the array that every route has to show, bit for bit; without it the source is
    refused with `error`, whose text matches `match`. `address` finds the first element in a source
    that can be shared; `strides` are in elements, row-major unless given.
    """

    name: str
    make: Callable[[], Any]
    values: Callable[[], np.ndarray[Any, Any]] | None = None
    address: Callable[[Any], int] | None = None
    strides: tuple[int, ...] | None = None
    readonly: bool = False
    library: str = ""
    error: type[Exception] = BufferError
    match: str = ""
    # strings, which only `asarray` and FeedBlob take
    text: bool = False

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a route gives: one of the three above, or an error."""

    how: str = ""
    error: type[Exception] | None = None
    match: str = ""


def expected(case: Case, source: Any, target: str, copy: bool | None) -> Outcome:
    """What ``convert(source, target, copy=copy)`` is to give; see the rules in bridge's docs."""
    if case.library == target:
        return Outcome(COPIED if copy is True else SAME)
    if case.values is None:
        return Outcome(error=case.error, match=case.match)
    values = case.values()
    if lacks(target, values):
        return Outcome(error=BufferError)
    if copy is True:
        return Outcome(COPIED)
    must = case.address is None or has_to_copy(case, case.address(source), values, target)
    if must and copy is False:
        return Outcome(error=BufferError)
    return Outcome(COPIED if must else SHARED)


def lacks(target: str, values: np.ndarray[Any, Any]) -> bool:
    """Whether the target has no such tensors."""
    name = values.dtype.name
    if target == "torch":
        return name in TORCH_LACKS
    if target == "jax":
        return name in JAX_LACKS or (name in WIDE and not x64())
    if target == "tensorflow":
        return name in TENSORFLOW_LACKS
    return False


def x64() -> bool:
    """Whether JAX holds 64-bit values now."""
    import jax

    return bool(jax.config.jax_enable_x64)


def has_to_copy(case: Case, address: int, values: np.ndarray[Any, Any], target: str) -> bool:
    """Whether the target cannot hold the memory as it lies."""
    strides = compact_strides(values.shape) if case.strides is None else case.strides
    row_major = is_row_major(strides, values.shape)
    if target == "torch":
        backwards = [n > 1 and step < 0 for n, step in zip(values.shape, strides, strict=True)]
        return case.readonly or (values.size > 0 and any(backwards))
    if target in ("jax", "tensorflow"):
        if values.dtype.name in (NARROW if target == "jax" else TENSORFLOW_COPIES):
            return True
        return not row_major or (values.size > 0 and address % 64 != 0)
    if target == "caffe2":
        return not row_major
    return False


def is_row_major(strides: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether elements with such strides lie one behind the other."""
    return 0 in shape or all(
        stride == plain
        for stride, plain, size in zip(strides, compact_strides(shape), shape, strict=True)
        if size > 1
    )


def aligned(values: np.ndarray[Any, Any], offset: int = 0) -> np.ndarray[Any, Any]:
    """A row-major copy of `values` at an address of `offset` bytes over a multiple of 64."""
    block = np.zeros(values.nbytes + 128, np.uint8)
    start = -block.ctypes.data % 64 + offset
    view = block[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


def samples(name: str, shape: tuple[int, ...] = (2, 3)) -> np.ndarray[Any, Any]:
    """Small numbers of a type, 0 and 1 among them, each right in every type that has it."""
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    count = int(np.prod(shape))
    plain = np.array([(0, 1, 1, 0, 1, 0)[i % 6] for i in range(count)]).reshape(shape)
    if name == "float8_e8m0fnu":  # has no zero
        plain = plain + 1
    elif name not in ("bool", "int1", "uint1", "int2", "uint2"):
        plain = plain + np.array([i % 5 for i in range(count)]).reshape(shape)
        plain = plain if name.startswith(("u", "float4")) else plain - 2
    elif name == "int1":
        plain = -plain
    made: np.ndarray[Any, Any] = plain.astype(dtype)
    return made
