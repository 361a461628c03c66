# SPDX-License-Identifier: Apache-2.0
"""Validation of ``__array_interface__`` and ``__cuda_array_interface__``.

NumPy uses address, sizes and strides unchecked, and does not compare them with the length of the
buffer (NumPy's array interface protocol, version 3).
"""

from __future__ import annotations

from bridge.annotation import Any

# No machine has more bytes of address space: 57 bits, half of it the kernel's.
_ADDRESSES = 2**56


def interface_of(x: Any, name: str) -> Any:
    """Return the attribute `name` of `x`; None if it has none. Raises BufferError: it fails."""
    try:
        return getattr(x, name, None)
    except Exception as error:
        from bridge.exchange.refusal import reason_of

        raise BufferError(
            f"{type(x).__name__}.{name} does not describe the memory: {reason_of(error)}"
        ) from error


def check_interface(x: Any, interface: Any, attribute: str = "__array_interface__") -> None:
    """Raise BufferError if `interface`, the value of `attribute` of `x`, is invalid.

    That is: not a dict, a masked array, elements without memory, or sizes and strides that lead
    out of the buffer or of the address space.
    """
    name = f"{type(x).__name__}.{attribute}"
    if not isinstance(interface, dict):
        raise BufferError(f"{name} is {type(interface).__name__}, not a dict.")
    if interface.get("mask") is not None:
        raise BufferError("A masked array has a mask besides its memory; it cannot be exchanged.")
    shape, strides = interface.get("shape"), interface.get("strides")
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise BufferError(f"{name} has the invalid shape {shape!r}.")
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
        raise BufferError(f"{name} has data that is not a buffer: {error}") from error
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
    except (KeyError, TypeError, ValueError, SyntaxError) as error:  # as NumPy reads "07,f4"
        raise BufferError(f"{name} has no element type (typestr): {error}") from error


def _compact(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides = []
    for size in reversed(shape):
        strides.append(itemsize)
        itemsize *= size
    return tuple(reversed(strides))
