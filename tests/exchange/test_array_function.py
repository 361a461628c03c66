# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on the bridge's tensors: what NumPy gives, on the shared memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2

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
def test_functions_give_the_results_of_numpy(name: str, make: Callable[[Any], Any]) -> None:
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


def test_an_undefined_tensor_is_refused_by_functions_of_numpy() -> None:
    x = caffe2.Tensor()
    with pytest.raises(RuntimeError, match="undefined"):
        np.sort(x)


@pytest.mark.cuda
def test_memory_of_a_device_is_refused_by_functions_that_read_it() -> None:
    x = at.ones(2, 3, device="cuda")
    assert np.shape(x) == (2, 3)
    with pytest.raises(BufferError, match=r"cpu\(\)"):
        np.sort(x)


class TestUfuncs:
    def test_out_is_written_and_returned(self) -> None:
        x = at.tensor([1.0, 4.0, 9.0])
        assert np.sqrt(x, out=x) is x
        assert x.tolist() == [1, 2, 3]
        assert np.add(x, [1, 1, 1], out=x) is x
        assert np.matmul(at.eye(2), at.ones(2, 2), out=(out := at.zeros(2, 2))) is out
        assert (x.tolist(), out.tolist()) == ([2, 3, 4], [[1, 1], [1, 1]])
        whole, rest = at.zeros(3), at.zeros(3)
        found = np.divmod(x, 2.0, out=(whole, rest))
        assert found[0] is whole
        assert (whole.tolist(), rest.tolist()) == ([1, 1, 2], [0, 1, 0])
        assert np.modf(x, out=(None, whole))[1] is whole

    def test_out_may_be_a_view_or_caffe2s(self) -> None:
        x = at.zeros(2, 3)
        np.add(x[:, ::2], 1, out=x[:, ::-2])
        assert x.tolist() == [[1, 0, 1], [1, 0, 1]]
        c = caffe2.Tensor(x)
        assert np.negative(x, out=c) is c
        assert x[0].tolist() == [-1, 0, -1]
        array = np.zeros((2, 3), np.float32)
        assert np.abs(x, out=array) is array
        assert array.sum() == 4

    def test_ufunc_at_writes_the_tensor(self) -> None:
        x = at.zeros(3)
        np.add.at(x, [0, 0, 2], 1)
        np.add.at(x, at.tensor([1]), at.tensor([5.0]))
        assert x.tolist() == [2, 5, 1]

    def test_methods_of_ufuncs_take_tensors(self) -> None:
        x = at.tensor([[1.0, 2.0], [3.0, 4.0]])
        assert np.add.reduce(x, axis=1).tolist() == [3, 7]
        assert np.multiply.accumulate(x[0]).tolist() == [1, 2]
        assert np.add.outer(x[0], x[0]).tolist() == [[2, 3], [3, 4]]
        np.add.reduce(x, axis=0, out=(out := at.zeros(2)))
        assert out.tolist() == [4, 6]

    def test_an_array_is_changed_in_place(self) -> None:
        array = kept = np.ones(3)
        array += at.tensor([1.0, 2.0, 3.0])
        array *= at.tensor(2.0)
        assert array is kept
        assert kept.tolist() == [4, 6, 8]
        with pytest.raises(TypeError, match="cast"):
            np.ones(3, int).__iadd__(at.ones(3) * 0.5)

    def test_binary_operators_with_an_array_on_the_left_are_torchs(self) -> None:
        x, array = at.tensor([1.0, 2.0]), np.asarray([3.0, 2.0], np.float32)
        pairs = [
            (array + x, [4, 4]), (array - x, [2, 0]), (array * x, [3, 4]), (array / x, [3, 1]),
            (array // x, [3, 1]), (array % x, [0, 0]), (array**x, [3, 4]), (array @ x, 7),
            (array == x, [False, True]), (array < x, [False, False]), (array >= x, [True, True]),
            (np.float32(2) * x, [2, 4]), (divmod(array, x)[0], [3, 1]),
        ]  # fmt: skip
        for found, expected in pairs:
            assert isinstance(found, at.Tensor)
            assert found.tolist() == expected
        assert isinstance(np.add(x, array), np.ndarray)
        assert isinstance(np.add(array, x, dtype=np.float64), np.ndarray)

    def test_read_only_memory_is_not_written(self) -> None:
        x = bridge.from_dlpack(b"abc")
        assert np.add(x, 1).tolist() == [98, 99, 100]
        for write in (
            lambda: np.add(x, 1, out=x),
            lambda: np.add.at(x, [0], 1),
            lambda: np.divmod(x, 2, out=(None, x)),
        ):
            with pytest.raises(c10.EnforceNotMet, match="read-only"):
                write()
        assert x.tolist() == [97, 98, 99]
