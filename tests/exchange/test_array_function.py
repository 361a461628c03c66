# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on the bridge's tensors: what NumPy gives, on the shared memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2

VALUES = np.array([[3.0, 0, 1], [2, 5, 4]])

CALLS: dict[str, Callable[[Any], Any]] = {
    "sum": np.sum,
    "sum of rows": lambda x: np.sum(x, axis=1, keepdims=True),
    "mean": np.mean,
    "nonzero": np.nonzero,
    "argsort": lambda x: np.argsort(x, axis=None),
    "concatenate": lambda x: np.concatenate([x, x]),
    "concatenate a tuple": lambda x: np.concatenate((x, x), axis=1),
    "concatenate a deque": lambda x: np.concatenate(deque([x, x])),
    "stack": lambda x: np.stack([x, x, x]),
    "block": lambda x: np.block([[x], [x]]),
    "where": lambda x: np.where(x, x, -1),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "clip": lambda x: np.clip(x, 1, 3),
    "transpose": np.transpose,
    "reshape": lambda x: np.reshape(x, 6),
    "shape": np.shape,
    "ndim": np.ndim,
    "size": np.size,
    "unique": np.unique,
    "norm": np.linalg.norm,
    "fft": np.fft.fft,
    "percentile": lambda x: np.percentile(x, 50),
    "array_equal": lambda x: np.array_equal(x, VALUES),
    "zeros_like": np.zeros_like,
    "asarray like": lambda x: np.asarray([1, 2], like=x),
    "zeros like": lambda x: np.zeros(3, like=x),
    "ufunc": np.exp,
    "ufunc with an array": lambda x: np.add(x, VALUES),
    "allclose": lambda x: np.allclose(x, VALUES),
}


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, tuple):
        pairs = zip(found, expected, strict=True)
        return isinstance(found, tuple) and all(same(one, other) for one, other in pairs)
    equal = bool(np.all(found == expected))
    return type(found) is type(expected) and equal and np.shape(found) == np.shape(expected)


@pytest.mark.parametrize("make", [bridge.asarray, lambda x: bridge.convert(x, "caffe2")])
@pytest.mark.parametrize("name", CALLS)
def test_functions_give_what_numpy_gives(name: str, make: Callable[[Any], Any]) -> None:
    assert same(CALLS[name](make(VALUES)), CALLS[name](VALUES))


def test_the_memory_is_shared() -> None:
    x = at.zeros(2, 3)
    assert bridge.shares_memory(np.transpose(x), x)
    np.copyto(x, 7)
    assert x.tolist() == [[7, 7, 7], [7, 7, 7]]
    out = at.zeros(2)
    np.sum(x, axis=1, out=out)
    assert out.tolist() == [21, 21]


def test_read_only_memory_is_not_written() -> None:
    x = bridge.from_dlpack(b"abc")
    with pytest.raises(ValueError, match="read-only"):
        np.copyto(x, 0)
    assert x.tolist() == [97, 98, 99]


def test_what_numpy_cannot_hold_is_left_to_it() -> None:
    x = caffe2.Tensor()
    with pytest.raises(RuntimeError, match="undefined"):
        np.sort(x)


@pytest.mark.cuda
def test_memory_of_a_device() -> None:
    x = at.ones(2, 3, device="cuda")
    assert np.shape(x) == (2, 3)
    with pytest.raises(BufferError, match=r"cpu\(\)"):
        np.sort(x)
