# SPDX-License-Identifier: Apache-2.0
"""What ``__array_interface__`` and its sister for CUDA say, looked at before it is believed.

NumPy takes address, sizes and strides as they are, and does not compare them with
the length of a buffer (NumPy's array interface protocol, version 3).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = ["check_interface"]

# No machine has more bytes of address space: 57 bits, half of it the kernel's.
_ADDRESSES = 2**56


def check_interface(x: Any, interface: Any, attribute: str = "__array_interface__") -> None:
    """Refuse a description that cannot be true. `attribute`: which of the two it was.

    Raises BufferError: no dict, a masked array, no memory for its elements, sizes or
    strides that lead out of the buffer or out of memory.
    """
    name = f"{type(x).__name__}.{attribute}"
    if not isinstance(interface, dict):
        raise BufferError(f"{name} is {type(interface).__name__} and no dict.")
    if interface.get("mask") is not None:
        raise BufferError("A masked array has no plain memory for what is masked.")
    shape, strides = interface.get("shape"), interface.get("strides")
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise BufferError(f"{name} has the shape {shape!r}, which is none.")
    itemsize = _itemsize(name, interface)
    if strides is None:
        strides = _compact(shape, itemsize)
    if (
        not isinstance(strides, tuple)
        or len(strides) != len(shape)
        or not all(isinstance(step, int) for step in strides)
    ):
        raise BufferError(f"{name} has the strides {strides!r} for the shape {shape}.")
    if 0 in shape:
        return
    spans = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low = sum(span for span in spans if span < 0)
    high = sum(span for span in spans if span > 0) + itemsize
    data, offset = interface.get("data"), interface.get("offset", 0)
    if isinstance(data, tuple):
        address = data[0] if len(data) == 2 and isinstance(data[0], int) else None
        if not address or address < 0 or address + low < 0 or address + high >= _ADDRESSES:
            raise BufferError(
                f"{name} has elements and no memory for them: its data is {data!r}, its shape "
                f"{shape} and its strides {strides}."
            )
        return
    try:
        length = memoryview(x if data is None else data).nbytes
    except TypeError as error:
        raise BufferError(f"{name} has data that is no buffer: {error}") from error
    if not isinstance(offset, int) or offset + low < 0 or offset + high > length:
        raise BufferError(
            f"{name} reaches bytes {offset}{low:+} to {offset}{high:+} of a buffer of {length}."
        )


def _itemsize(name: str, interface: dict[str, Any]) -> int:
    import numpy

    if interface.get("typestr") is None:  # which NumPy would read as float64
        raise BufferError(f"{name} has no element type (typestr).")
    try:
        return int(numpy.dtype(interface["typestr"]).itemsize)
    except (KeyError, TypeError) as error:
        raise BufferError(f"{name} has no element type (typestr): {error}") from error


def _compact(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= size
    return tuple(reversed(strides))
