# SPDX-License-Identifier: Apache-2.0
"""Random shapes, arrays, indexes and views for the property-based tests."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

DTYPES = ["float32", "float64", "int64", "uint8", "bool", "complex64"]

shapes = numpy_strategies.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=4)


@st.composite
def arrays(draw: st.DrawFn, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """An array of distinct-looking values: 0, 1, 2, … of a drawn shape and type."""
    shape = draw(shapes) if shape is None else shape
    dtype = draw(st.sampled_from(DTYPES))
    values = np.arange(int(np.prod(shape, dtype=int)))
    return (values % 2 == 0 if dtype == "bool" else values).astype(dtype).reshape(shape)


def indexes(shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    """Ints, slices of any step, None and an ellipsis, alone or in a tuple."""
    return numpy_strategies.basic_indices(shape, allow_newaxis=True, max_dims=8)


@st.composite
def broadcastable(draw: st.DrawFn, shape: tuple[int, ...]) -> np.ndarray:
    """A float64 array that broadcasts to `shape`."""
    kept = shape[draw(st.integers(0, len(shape))) :]
    sides = [draw(st.sampled_from([1, side])) for side in kept]
    seed = draw(st.integers(0, 99))
    return np.asarray(np.random.default_rng(seed).integers(0, 50, sides), dtype=np.float64)


@st.composite
def view_steps(draw: st.DrawFn, array: np.ndarray) -> tuple[str, tuple[Any, ...], np.ndarray]:
    """One view of `array`: the method of at.Tensor, its arguments, and what NumPy makes of it."""
    rank = array.ndim
    kinds = ["unsqueeze", "squeeze", "getitem", "reshape", "expand", "alias"]
    kinds += ["transpose", "permute", "select", "narrow", "slice"] if rank else []
    kinds += ["diagonal"] if rank > 1 else []
    kind = draw(st.sampled_from(kinds))
    dim = draw(st.integers(0, rank - 1)) if rank else 0
    if kind == "alias":
        return kind, (), array
    if kind == "unsqueeze":
        dim = draw(st.integers(0, rank))
        return kind, (dim,), np.expand_dims(array, dim)
    if kind == "squeeze":
        return kind, (), array.squeeze()
    if kind == "getitem":
        index = draw(indexes(array.shape))
        return "__getitem__", (index,), np.asarray(array[index])
    if kind == "reshape":
        order = draw(st.permutations(array.shape))
        shape = draw(st.sampled_from([tuple(order), (array.size,), (1, *order)]))
        return kind, (shape,), array.reshape(shape)
    if kind == "expand":
        sizes = tuple(draw(st.integers(0, 3)) if side == 1 else side for side in array.shape)
        return kind, ((2, *sizes),), np.broadcast_to(array, (2, *sizes))
    if kind == "transpose":
        other = draw(st.integers(-rank, rank - 1))
        return kind, (dim, other), np.swapaxes(array, dim, other)
    if kind == "permute":
        order = draw(st.permutations(range(rank)))
        return kind, (tuple(order),), array.transpose(order)
    if kind == "diagonal":
        first, second = draw(st.permutations(range(rank)))[:2]
        offset = draw(st.integers(-2, 2))
        return kind, (offset, first, second), array.diagonal(offset, first, second)
    side = array.shape[dim]
    before = (slice(None),) * dim
    if kind == "select":
        if not side:
            return "alias", (), array
        index = draw(st.integers(-side, side - 1))
        return kind, (dim, index), np.asarray(array[(*before, index)])
    if kind == "narrow":
        start = draw(st.integers(0, side))
        length = draw(st.integers(0, side - start))
        return kind, (dim, start, length), array[(*before, slice(start, start + length))]
    start, end, step = draw(st.integers(-5, 5)), draw(st.integers(-5, 5)), draw(st.integers(1, 3))
    return "slice", (dim, start, end, step), array[(*before, slice(start, end, step))]
