# SPDX-License-Identifier: Apache-2.0
"""Memory that ``__cuda_array_interface__`` describes.

Follows the CUDA Array Interface, version 3, of Numba's documentation. It does not include
the device of the memory; torch asks CUDA for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bridge.c10.errors import EnforceTypeError
from bridge.c10.tensor_impl import TensorImpl
from bridge.c10.type_meta import TypeMeta
from bridge.exchange.array_interface import check_interface
from bridge.exchange.dlpack_import import adopt_cuda_memory
from bridge.exchange.streams import wait_for_producer


def import_cuda_interface(x: Any, interface: Any) -> TensorImpl:
    """Return a TensorImpl over the CUDA memory that `interface` of `x` describes; shared.

    Keeps `x`. torch's current stream waits for the stream that `interface` names, unless there are
    no elements.

    Raises BufferError: a masked array, structured or foreign-endian elements, strides that are no
    whole number of elements, no CUDA device here, or a description that makes no sense.
    """
    name = f"{type(x).__name__}.__cuda_array_interface__"
    check_interface(x, interface, "__cuda_array_interface__")
    shape, strides = interface["shape"], interface.get("strides")
    data = interface.get("data")
    if not isinstance(data, tuple) or len(data) != 2 or not isinstance(data[0], int):
        raise BufferError(f"{name} has the data {data!r}, and not (address, read-only).")
    address, readonly = data
    dtype = np.dtype(interface["typestr"])
    meta = _type_of(dtype)
    if meta is None:
        raise BufferError(
            f"{name} has elements of {interface['typestr']!r}, which is not a native numeric type. "
            "Give the bridge an object with __dlpack__, or convert it first."
        )
    steps = None
    if strides is not None:
        if any(step % dtype.itemsize for step in strides):
            raise BufferError(
                f"{name} has strides of {strides} bytes, no whole number of elements of "
                f"{dtype.itemsize}."
            )
        steps = tuple(step // dtype.itemsize for step in strides)
    if 0 in shape:
        address = 0
    index = _device_of(name, address)
    if address:  # else the stream may be of another device, and there is nothing to wait for
        wait_for_producer(index, interface.get("stream"))
    try:
        return adopt_cuda_memory(x, address, shape, steps, meta, index, bool(readonly))
    except (ValueError, OverflowError) as error:
        raise BufferError(f"{name} has sizes or strides of no memory: {error}") from error


def _type_of(dtype: np.dtype[Any]) -> TypeMeta | None:
    """Return the element type; None if it is foreign-endian, or no numeric type of the bridge."""
    if dtype == np.dtype("V2"):  # as torch has it
        return TypeMeta.Make("bfloat16")
    if dtype.kind not in "biufc" or not dtype.isnative:
        return None
    try:
        return TypeMeta.Make(dtype)
    except EnforceTypeError:  # long double
        return None


class _Byte:
    """A byte of CUDA memory, as torch takes it."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__ = {
            "version": 2,
            "typestr": "|u1",
            "shape": (1,),
            "data": (address, False),
        }


def _device_of(name: str, address: int) -> int:
    """Return the index of the CUDA device that `address` is on; of the current one for 0."""
    try:
        import torch

        if not torch.cuda.is_available():
            raise BufferError(
                f"The memory of {name} is on a CUDA device, and torch.cuda.is_available() is False."
            )
        if not address:
            return torch.cuda.current_device()
        with torch._C.DisableTorchFunction():  # a torch.device context would choose
            return int(torch.as_tensor(_Byte(address)).device.index)
    except (TypeError, ValueError, RuntimeError, AssertionError) as error:
        raise BufferError(f"{name} describes no CUDA memory at {address:#x}: {error}") from error
