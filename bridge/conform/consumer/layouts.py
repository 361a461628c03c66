# SPDX-License-Identifier: Apache-2.0
"""How a consumer reads data, shape, strides and offset."""

from __future__ import annotations

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import shown, values_of
from bridge.conform.kit.source import Source, imported, required
from bridge.conform.kit.verdict import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]
    ToNumPy = Callable[[Any], Any]


def layout_read(to_numpy: ToNumPy, tensor: Any, source: Source, what: str) -> None:
    """Compare the shape and the values of a consumer's tensor with the source's."""
    found, wanted = values_of(to_numpy, tensor), source.wanted
    if found.shape != wanted.shape:
        broken(f"{what} of shape {wanted.shape} became one of shape {found.shape}")
    if found.tolist() != wanted.tolist():
        broken(f"{what}: {wanted.tolist()} became {shown(found, wanted)}")


def consumer_strides(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    views = (lambda x: x.T, lambda x: x[:, ::2], lambda x: x[1:, 1:3], lambda x: x[:, 1])
    for view in views:
        source = Source(np.arange(12.0).reshape(3, 4), view=view)
        layout_read(to_numpy, imported(from_dlpack, source), source, "a strided array")


def consumer_strides_column_major(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(24.0).reshape(2, 3, 4), view=lambda x: x.T)
    layout_read(to_numpy, imported(from_dlpack, source), source, "a column-major array")


def consumer_strides_null(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for version in ((1, 0), (1, 1), None):
        source = Source(np.arange(6.0).reshape(2, 3), version=version, strides=None)
        tensor = required(from_dlpack, source, "an array whose strides are NULL")
        layout_read(to_numpy, tensor, source, "an array whose strides are NULL")


def consumer_strides_negative(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    whole = np.arange(6.0).reshape(2, 3)
    for view in (lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x.reshape(-1)[::-1]):
        source = Source(whole, view=view)
        layout_read(to_numpy, imported(from_dlpack, source), source, "an array read backwards")


def consumer_strides_zero(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(3.0), view=lambda x: np.broadcast_to(x, (4, 3)))
    layout_read(to_numpy, imported(from_dlpack, source), source, "an array repeated by stride 0")


def consumer_strides_of_one(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6.0).reshape(1, 6, 1), strides=(999, 1, 777))
    layout_read(to_numpy, imported(from_dlpack, source), source, "an array with sizes of 1")


def consumer_shape(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for shape in ((24,), (2, 3, 4), (2, 1, 3, 1, 2, 2)):
        source = Source(np.arange(24.0).reshape(shape))
        tensor = required(from_dlpack, source, f"an array of shape {shape}")
        layout_read(to_numpy, tensor, source, "an array")


def consumer_zero_dimensions(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for version in ((1, 3), None):
        source = Source(np.array(7.5), version=version)
        tensor = required(from_dlpack, source, "a tensor without dimensions")
        layout_read(to_numpy, tensor, source, "a tensor without dimensions")


def consumer_zero_dimensions_null(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for version in ((1, 3), None):
        source = Source(np.array(7.5), version=version, shape=None, strides=None)
        tensor = required(from_dlpack, source, "a tensor without dimensions, shape NULL,")
        layout_read(to_numpy, tensor, source, "a tensor without dimensions")


def consumer_zero_size(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for shape in ((0,), (0, 3), (3, 0, 2)):
        source = Source(np.zeros(shape))
        tensor = required(from_dlpack, source, f"an array of shape {shape}")
        layout_read(to_numpy, tensor, source, "an array")


def consumer_zero_size_null(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for shape in ((0,), (0, 3), (3, 0, 2)):
        source = Source(np.zeros(shape), data=None)
        tensor = required(from_dlpack, source, f"an array of shape {shape}, data NULL,")
        layout_read(to_numpy, tensor, source, "an array")


def consumer_byte_offset(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(80.0), view=lambda x: x[40:46], version=version)
        source.fields = {"data": source.base.ctypes.data, "byte_offset": 320}
        tensor = required(from_dlpack, source, "an array with byte_offset=320")
        layout_read(to_numpy, tensor, source, "an array with a byte_offset")


def consumer_byte_offset_small(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(12, dtype="i2"), view=lambda x: x[3:9:2])
    source.fields = {"data": source.base.ctypes.data, "byte_offset": 6}
    tensor = imported(from_dlpack, source)
    layout_read(to_numpy, tensor, source, "an array with byte_offset=6 and strides")


def consumer_alignment(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for begin in (1, 2, 5):
        source = Source(np.arange(6.0 + begin), view=lambda x: x[len(x) - 6 :])
        tensor = required(from_dlpack, source, f"data {8 * begin} bytes after a multiple of 256")
        layout_read(to_numpy, tensor, source, "an array not aligned to 256 bytes")


def consumer_alignment_odd(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.zeros(12, "f4"), view=lambda x: x.view("u1")[3:27].view("f4"))
    source.array[...] = source.wanted = np.arange(6, dtype="f4")
    layout_read(to_numpy, imported(from_dlpack, source), source, "an array at an odd address")
