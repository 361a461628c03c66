# SPDX-License-Identifier: Apache-2.0
"""Functions of the namespace give what NumPy, which follows the standard, too, gives."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at

xp: Any = at.zeros(1).__array_namespace__()

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 1e-3, 1e30]
A = np.asarray([[3.0, -1.5, 2.0], [0.5, 4.0, -2.0]])
I8 = np.asarray([[3, -1, 2], [0, 4, -2]], np.int8)
TRUTH = A > 0
INDEX = np.asarray([[0], [-1]])
SQUARE = A @ A.T + np.eye(2)


def to_ours(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return bridge.from_dlpack(x.copy())
    return type(x)(map(to_ours, x)) if isinstance(x, (list, tuple)) else x


def expect_same(ours: Any, theirs: Any) -> None:
    """Check types, sizes and values; float32 and float64 are close."""
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            expect_same(one, other)
        return
    theirs = np.asarray(theirs)
    assert isinstance(ours, at.Tensor)
    assert ours.dtype.name == theirs.dtype.name
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)


UNARY = {
    "f": "abs acos acosh asin asinh atan atanh ceil conj cos cosh exp expm1 floor isfinite isinf "
    "isnan log log10 log1p log2 negative positive real reciprocal round sign signbit sin sinh "
    "square sqrt tan tanh trunc",
    "c": "abs acos acosh asin asinh atan atanh conj cos cosh exp isfinite isinf isnan imag log "
    "negative real reciprocal round sign sin sinh square sqrt tan tanh",
    "i": "abs bitwise_invert ceil floor negative positive round sign square trunc isfinite",
    "?": "bitwise_invert logical_not",
}


@pytest.mark.parametrize(
    ("kind", "name"), [(k, n) for k, row in UNARY.items() for n in row.split()]
)
def test_functions_of_one_array_agree_with_numpy(kind: str, name: str) -> None:
    values: dict[str, Any] = {
        "f": [np.asarray(SPECIAL, d) for d in ("f4", "f8")],
        "c": [np.asarray([1 + 2j, -0.5j, 2, 0], d) for d in ("c8", "c16")],
        "i": [I8, I8.astype("i8"), abs(I8).astype("u1")],
        "?": [TRUTH],
    }
    for x in values[kind]:
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
        expect_same(getattr(xp, name)(to_ours(x)), expected)


BINARY = {
    "f": "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal "
    "logaddexp maximum minimum multiply nextafter not_equal pow remainder subtract",
    "i": "add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor equal "
    "floor_divide greater less maximum minimum multiply not_equal remainder subtract",
    "?": "bitwise_and bitwise_or bitwise_xor equal logical_and logical_or logical_xor not_equal",
}


@pytest.mark.parametrize(
    ("kind", "name"), [(k, n) for k, row in BINARY.items() for n in row.split()]
)
def test_functions_of_two_arrays_agree_with_numpy(kind: str, name: str) -> None:
    pairs: dict[str, Any] = {
        "f": [(A, A[0]), (A.astype("f4"), A), (A, A[0, 0].reshape(())), (A[:, :1], A[1])],
        "i": [
            (abs(I8), abs(I8[:, 1:2]) + 1),
            (abs(I8), np.asarray(3, "i4").reshape(())),
            (abs(I8).astype("u1"), abs(I8) + 1),
        ],
        "?": [(TRUTH, TRUTH[0])],
    }
    for x, y in pairs[kind]:
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x, np.asarray(y))
        expect_same(getattr(xp, name)(to_ours(x), to_ours(np.asarray(y))), expected)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "lt", "ge"]
)
def test_operators_agree_with_numpy(name: str) -> None:
    run = getattr(operator, name)
    for x, y in ((abs(A), abs(A[0])), (abs(A), 2.0), (2.0, abs(A))):
        expect_same(run(to_ours(x), to_ours(y)), run(x, y))


Case = tuple[str, Callable[..., Any], tuple[Any, ...]]
CASES: list[Case] = [
    ("sum", lambda m, x: m.sum(x, axis=1, keepdims=True), (A,)),
    ("sum of all", lambda m, x: m.sum(x), (A,)),
    ("sum of small integers", lambda m, x: m.sum(x, axis=0), (I8,)),
    ("sum along no axis", lambda m, x: m.sum(x, axis=()), (A,)),
    ("sum of a type", lambda m, x: m.sum(x, dtype=m.float32), (A,)),
    ("prod", lambda m, x: m.prod(x, axis=(0, 1)), (A,)),
    ("prod kept", lambda m, x: m.prod(x, axis=0, keepdims=True), (A,)),
    ("max", lambda m, x: m.max(x, axis=-1), (A,)),
    ("min", lambda m, x: m.min(x, keepdims=True), (I8,)),
    ("mean", lambda m, x: m.mean(x, axis=0), (A,)),
    ("std", lambda m, x: m.std(x, axis=1), (A,)),
    ("var", lambda m, x: m.var(x, correction=1.5), (A,)),
    ("all", lambda m, x: m.all(x, axis=1), (TRUTH,)),
    ("any", lambda m, x: m.any(x, axis=(0, 1), keepdims=True), (TRUTH,)),
    ("count_nonzero", lambda m, x: m.count_nonzero(x, axis=1), (I8,)),
    ("cumulative_sum", lambda m, x: m.cumulative_sum(x, axis=1, include_initial=True), (A,)),
    ("cumulative_prod", lambda m, x: m.cumulative_prod(x, axis=0), (A,)),
    ("diff", lambda m, x: m.diff(x, n=2), (A,)),
    ("argmax", lambda m, x: m.argmax(x, axis=0, keepdims=True), (A,)),
    ("argmin of all", lambda m, x: m.argmin(x), (A,)),
    ("sort", lambda m, x: m.sort(x, axis=0), (A,)),
    ("argsort", lambda m, x: m.argsort(x), (A,)),
    ("nonzero", lambda m, x: m.nonzero(x), (TRUTH,)),
    ("searchsorted", lambda m, x, y: m.searchsorted(x, y, side="right"), (A[1] * 0 + [1, 2, 3], A)),
    ("where", lambda m, c, x: m.where(c, x, 0.0), (TRUTH, A)),
    ("isin", lambda m, x, y: m.isin(x, y), (I8, I8[0])),
    ("take", lambda m, x, i: m.take(x, i, axis=1), (A, np.asarray([2, -1, 0]))),
    ("take_along_axis", lambda m, x, i: m.take_along_axis(x, i, axis=1), (A, INDEX)),
    ("unique_values", lambda m, x: m.sort(m.unique_values(x)), (abs(I8),)),
    ("unique_counts", lambda m, x: m.unique_counts(x), (abs(I8),)),
    ("unique_all", lambda m, x: m.unique_all(x), (abs(I8),)),
    ("unique_inverse", lambda m, x: m.unique_inverse(x), (abs(I8),)),
    ("clip", lambda m, x: m.clip(x, -1, 2), (A,)),
    ("clip small integers", lambda m, x: m.clip(x, 0, 100), (I8,)),
    ("clip to arrays", lambda m, x, y: m.clip(x, y, None), (A, A[0])),
    ("broadcast_arrays", lambda m, x, y: m.broadcast_arrays(x, y), (A, A[0])),
    ("broadcast_to", lambda m, x: m.broadcast_to(x, (2, 2, 3)), (A,)),
    ("concat", lambda m, x, y: m.concat([x, y], axis=0), (A, A.astype("f4"))),
    ("concat flat", lambda m, x: m.concat([x, x], axis=None), (A,)),
    ("expand_dims", lambda m, x: m.expand_dims(x, axis=(0, -1)), (A,)),
    ("flip", lambda m, x: m.flip(x, axis=1), (A,)),
    ("flip of all", lambda m, x: m.flip(x), (A,)),
    ("moveaxis", lambda m, x: m.moveaxis(x, 0, -1), (A,)),
    ("permute_dims", lambda m, x: m.permute_dims(x, (1, 0)), (A,)),
    ("repeat", lambda m, x: m.repeat(x, 2), (A,)),
    ("repeat by array", lambda m, x, n: m.repeat(x, n, axis=0), (A, np.asarray([2, 0]))),
    ("reshape", lambda m, x: m.reshape(x, (3, -1)), (A,)),
    ("roll", lambda m, x: m.roll(x, 1), (A,)),
    ("roll of axes", lambda m, x: m.roll(x, (1, -1), axis=(0, 1)), (A,)),
    ("squeeze", lambda m, x: m.squeeze(x, axis=(0, 2)), (A[None, :, None],)),
    ("stack", lambda m, x: m.stack([x, x], axis=-1), (A,)),
    ("tile", lambda m, x: m.tile(x, (2, 1, 2)), (A,)),
    ("unstack", lambda m, x: m.unstack(x, axis=1), (A,)),
    ("arange", lambda m: m.arange(5, 1, -1, dtype=m.float32), ()),
    ("arange of nothing", lambda m: m.arange(3, 1), ()),
    ("linspace", lambda m: m.linspace(0, 1, 5, dtype=m.float64), ()),
    ("linspace to before", lambda m: m.linspace(0, 1, 4, endpoint=False, dtype=m.float64), ()),
    ("eye", lambda m: m.eye(3, 4, k=1, dtype=m.float64), ()),
    ("eye below", lambda m: m.eye(3, k=-5, dtype=m.float64), ()),
    ("full", lambda m: m.full((2, 1), 7), ()),
    ("full_like", lambda m, x: m.full_like(x, 2), (I8,)),
    ("meshgrid", lambda m, x, y: m.meshgrid(x, y), (A[0], A[:, 0])),
    ("tril", lambda m, x: m.tril(x, k=-1), (A,)),
    ("triu", lambda m, x: m.triu(x, k=1), (A,)),
    ("matmul", lambda m, x, y: m.matmul(x, y), (A, A.T.astype("f4"))),
    ("tensordot", lambda m, x: m.tensordot(x, x, axes=((0,), (-2,))), (A,)),
    ("vecdot", lambda m, x: m.vecdot(x, x), (A + 1j,)),
    ("vecdot of integers", lambda m, x: m.vecdot(x, x), (I8,)),
    ("matrix_transpose", lambda m, x: m.matrix_transpose(x), (A,)),
    ("cholesky", lambda m, x: m.linalg.cholesky(x), (SQUARE,)),
    ("cross", lambda m, x, y: m.linalg.cross(x, y), (A, A[0])),
    ("det", lambda m, x: m.linalg.det(x), (SQUARE,)),
    ("diagonal", lambda m, x: m.linalg.diagonal(x, offset=1), (A,)),
    ("eigvalsh", lambda m, x: m.linalg.eigvalsh(x), (SQUARE,)),
    ("inv", lambda m, x: m.linalg.inv(x), (SQUARE,)),
    ("matrix_norm", lambda m, x: m.linalg.matrix_norm(x, ord=1, keepdims=True), (A,)),
    ("matrix_power", lambda m, x: m.linalg.matrix_power(x, 3), (SQUARE,)),
    ("outer", lambda m, x, y: m.linalg.outer(x, y), (A[0], A[:, 0])),
    ("pinv", lambda m, x: m.linalg.pinv(x), (A,)),
    ("slogdet", lambda m, x: m.linalg.slogdet(x), (SQUARE,)),
    ("solve", lambda m, x, y: m.linalg.solve(x, y), (SQUARE, A)),
    ("solve of matrices", lambda m, x, y: m.linalg.solve(x, y), (SQUARE[None], SQUARE)),
    ("svdvals", lambda m, x: m.linalg.svdvals(x), (A,)),
    ("trace", lambda m, x: m.linalg.trace(x), (A,)),
    ("vector_norm", lambda m, x: m.linalg.vector_norm(x, axis=1, ord=1), (A,)),
    ("vector_norm of all", lambda m, x: m.linalg.vector_norm(x), (A,)),
    ("fft", lambda m, x: m.fft.fft(x, n=4, axis=0), (A + 0j,)),
    ("irfft", lambda m, x: m.fft.irfft(x), (A + 0j,)),
    ("rfft", lambda m, x: m.fft.rfft(x, norm="ortho"), (A,)),
    ("fftn", lambda m, x: m.fft.fftn(x, s=(4, 4), axes=(0, 1)), (A + 0j,)),
    ("hfft", lambda m, x: m.fft.hfft(x), (A + 0j,)),
    ("fftshift", lambda m, x: m.fft.fftshift(x, axes=1), (A,)),
    ("ifftshift", lambda m, x: m.fft.ifftshift(x), (A,)),
    ("fftfreq", lambda m: m.astype(m.fft.fftfreq(5, d=0.5), m.float32), ()),
    ("rfftfreq", lambda m: m.astype(m.fft.rfftfreq(5), m.float32), ()),
]


@pytest.mark.parametrize(("call", "values"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_functions_with_other_arguments_agree_with_numpy(
    call: Callable[..., Any], values: tuple[Any, ...]
) -> None:
    theirs = np if hasattr(np, "cumulative_sum") else pytest.importorskip("array_api_compat").numpy
    expect_same(call(xp, *to_ours(values)), call(theirs, *values))


@pytest.mark.parametrize("key", [0, -1, slice(None, None, -1), (0, 1), (..., 1), None, (None, 0)])
def test_indexing_reads_and_writes_as_numpy_does(key: Any) -> None:
    expect_same(to_ours(A)[key], A[key])
    ours, theirs = to_ours(A), A.copy()
    ours[key] = theirs[key] = 9.0
    expect_same(ours, theirs)


def test_indexing_by_arrays_reads_as_numpy_does() -> None:
    expect_same(to_ours(A)[to_ours(TRUTH)], A[TRUTH])
    index = np.asarray([1, 0, 1])
    expect_same(to_ours(A)[to_ours(index), to_ours(index)], A[index, index])
