# SPDX-License-Identifier: Apache-2.0
"""Whether two tensors have a byte in common.

A tensor's bytes are a sum over its dimensions: of each, a number of equal steps. Dimensions whose
steps close the gaps of those below are one with them, so most tensors come down to a run of bytes
and a dimension or two. What is left is a bounded Diophantine problem, which is NumPy's to solve
(numpy.shares_memory): it is given the addresses as they are, and reads no memory.
"""

from __future__ import annotations

from bridge.see.memory import Block, Memory, extent
from bridge.see.naming import kind_of
from bridge.see.read import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["shares_memory"]

# Candidates that NumPy may try, less than a second of them mostly: the problem is NP-complete, and
# strides can be made up on which it would go on for ever.
_MAX_WORK: Any = 3 * 10**6


def shares_memory(a: Any, b: Any) -> bool:
    """See bridge.shares_memory."""
    one, other = _read(a), _read(b)
    if any(_overlap(mine, theirs) for mine in one.blocks for theirs in other.blocks):
        return True
    for x, memory, against in ((a, one, other), (b, other, one)):
        if memory.unknown and (against.blocks or against.unknown):
            if a is b:
                return 0 not in (memory.sizes or ())
            raise BufferError(f"Whether a {kind_of(x)} shares memory cannot be told. {memory.note}")
    return False


def _read(x: Any) -> Memory:
    try:
        return read(x)
    except TypeError as error:
        raise TypeError(f"shares_memory compares tensors. {error}") from error


def _overlap(a: Block, b: Block) -> bool:
    if a.space != b.space:
        return False
    (a_low, a_high), (b_low, b_high) = extent(a), extent(b)
    if max(a_low, b_low) >= min(a_high, b_high):
        return False
    a_dims, b_dims = _merged(a), _merged(b)
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
            f"Whether memory of sizes {list(a.sizes)} and strides {list(a.strides)} bytes overlaps "
            f"that of sizes {list(b.sizes)} and strides {list(b.strides)} takes too long to find "
            f"out: {error}"
        ) from error


def _merged(block: Block) -> list[tuple[int, int]]:
    """Return the dimensions, (size, step in bytes), of the same bytes in as few as will do.

    Steps are positive, from the lowest byte on, and rise.

    >>> from bridge.see.memory import Block
    >>> from bridge.see.overlap import _merged
    >>> (
    ...     _merged(Block("host", 0, (5, 2, 3), (-24, 12, 4), 4)),
    ...     _merged(Block("host", 0, (3,), (8,), 4)),
    ... )
    ([(120, 1)], [(4, 1), (3, 8)])
    """
    dims = [(block.itemsize, 1)]
    dims += [(n, abs(step)) for n, step in zip(block.sizes, block.strides, strict=True)]
    merged: list[tuple[int, int]] = []
    for size, step in sorted((dim for dim in dims if dim[0] > 1 and dim[1]), key=lambda d: d[1]):
        if merged:
            below, low_step = merged[-1]
            times, rest = divmod(step, low_step)
            if rest == 0 and times <= below:
                # each step lands on, or right after, a place that is there already
                merged[-1] = (below + times * (size - 1), low_step)
                continue
        merged.append((size, step))
    return merged


def _solid(dims: list[tuple[int, int]]) -> bool:
    """Return whether the bytes are one run without gaps."""
    return not dims or (len(dims) == 1 and dims[0][1] == 1)


class _Bytes:
    """Bytes at an address, as NumPy takes them."""

    def __init__(self, address: int, dims: list[tuple[int, int]]) -> None:
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "data": (address, True),
            "shape": tuple(size for size, _ in dims),
            "strides": tuple(step for _, step in dims),
        }
