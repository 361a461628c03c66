# SPDX-License-Identifier: Apache-2.0
"""Whether two tensors have a byte in common.

The offset of a byte is a sum of multiples of the strides. A dimension whose stride closes the gaps
between the positions of the smaller strides is merged with them, so that most tensors reduce to one
run of bytes and one or two dimensions. The remaining bounded Diophantine problem is solved by
numpy.shares_memory, which is given the addresses and does not read the memory.
"""

from __future__ import annotations

from typing import Any

from bridge.see.find_memory import find_memory
from bridge.see.tensor_memory import Block, TensorMemory, byte_range, merged_dims
from bridge.see.type_names import type_name

# The number of candidates that NumPy may try, which mostly takes less than a second. The problem is
# NP-complete: there are strides for which it would not end.
_MAX_WORK: Any = 3 * 10**6


def shares_memory(a: Any, b: Any) -> bool:
    """Return whether `a` and `b` have a byte in common; see bridge.shares_memory."""
    one, other = _memory(a), _memory(b)
    if any(_overlap(mine, theirs) for mine in one.blocks for theirs in other.blocks):
        return True
    for x, memory, against in ((a, one, other), (b, other, one)):
        if memory.unknown and (against.blocks or against.unknown):
            if a is b:
                return 0 not in (memory.sizes or ())
            raise BufferError(
                f"Whether a {type_name(x)} shares memory cannot be told. {memory.note}"
            )
    return False


def _memory(x: Any) -> TensorMemory:
    try:
        return find_memory(x)
    except TypeError as error:
        raise TypeError(f"shares_memory compares tensors. {error}") from error


def _overlap(a: Block, b: Block) -> bool:
    if a.space != b.space:
        return False
    (a_low, a_high), (b_low, b_high) = byte_range(a), byte_range(b)
    if max(a_low, b_low) >= min(a_high, b_high):
        return False
    a_dims, b_dims = merged_dims(a), merged_dims(b)
    if _solid(a_dims) and _solid(b_dims):
        return True
    import numpy

    try:
        return bool(
            numpy.shares_memory(
                numpy.asarray(_Bytes(a_low, a_dims)),
                numpy.asarray(_Bytes(b_low, b_dims)),
                max_work=_MAX_WORK,
            )
        )
    except (RuntimeError, ValueError) as error:
        raise BufferError(
            f"It takes too long to find out whether memory of sizes {list(a.sizes)} and strides "
            f"{list(a.strides)} bytes overlaps that of sizes {list(b.sizes)} and strides "
            f"{list(b.strides)} bytes: {error}"
        ) from error


def _solid(dims: list[tuple[int, int]]) -> bool:
    """Return whether the bytes are contiguous."""
    return not dims or (len(dims) == 1 and dims[0][1] == 1)


class _Bytes:
    """Bytes at an address, with NumPy's array interface."""

    def __init__(self, address: int, dims: list[tuple[int, int]]) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "data": (address, True),
            "shape": tuple(size for size, _ in dims),
            "strides": tuple(step for _, step in dims),
        }
