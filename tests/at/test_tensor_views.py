# SPDX-License-Identifier: Apache-2.0
"""Views, each compared with torch's over the same memory: metadata, values, address, errors."""

from typing import Any

import numpy as np
import pytest
import torch

from bridge import at

from .comparing import ERRORS, expect_like_torch, pair

Case = tuple[tuple[int, ...], str, tuple[Any, ...], dict[str, Any]]

VIEWS: list[Case] = [
    ((2, 3), "view", (6,), {}),
    ((2, 3), "view", (3, 2), {}),
    ((2, 3), "view", ((3, 2),), {}),
    ((2, 3), "view", ([1, 6],), {}),
    ((2, 3), "view", (-1,), {}),
    ((2, 6), "view", (2, -1, 3), {}),
    ((1,), "view", ((),), {}),
    ((2, 0, 3), "view", (0,), {}),
    ((2, 0), "view", (0, 5), {}),
    ((2, 3), "reshape", (3, 2), {}),
    ((2, 3), "reshape", ((-1,),), {}),
    ((), "reshape", (1, 1), {}),
    ((2, 3), "as_strided", ((3, 2), (1, 3)), {}),
    ((2, 3), "as_strided", ((2, 2), (1, 1), 2), {}),
    ((2, 3), "as_strided", ([], []), {}),
    ((6,), "as_strided", ((3, 3), (1, 1)), {"storage_offset": 1}),
    ((6,), "as_strided", ((0, 9), (1, 1)), {}),
    ((2, 3), "transpose", (0, 1), {}),
    ((2, 3, 4), "transpose", (-1, 0), {}),
    ((2, 3, 4), "transpose", (1, 1), {}),
    ((), "transpose", (0, -1), {}),
    ((2, 3, 4), "permute", (2, 0, 1), {}),
    ((2, 3, 4), "permute", ((-1, 0, -2),), {}),
    ((), "permute", ((),), {}),
    ((2, 3), "t", (), {}),
    ((4,), "t", (), {}),
    ((), "t", (), {}),
    ((2, 3), "select", (0, 1), {}),
    ((2, 3), "select", (-1, -1), {}),
    ((2, 3, 4), "select", (1, 2), {}),
    ((5, 3), "narrow", (0, 1, 3), {}),
    ((5, 3), "narrow", (-1, 1, 2), {}),
    ((5, 3), "narrow", (0, 5, 0), {}),
    ((5, 3), "narrow", (0, -2, 2), {}),
    ((1, 2, 1, 3), "squeeze", (), {}),
    ((1, 2, 1, 3), "squeeze", (0,), {}),
    ((1, 2, 1, 3), "squeeze", (-2,), {}),
    ((1, 2, 1, 3), "squeeze", (1,), {}),
    ((), "squeeze", (), {}),
    ((2, 3), "unsqueeze", (0,), {}),
    ((2, 3), "unsqueeze", (2,), {}),
    ((2, 3), "unsqueeze", (-1,), {}),
    ((), "unsqueeze", (0,), {}),
    ((1, 3), "expand", (4, 3), {}),
    ((1, 3), "expand", ((2, 4, -1),), {}),
    ((3,), "expand", (2, 3), {}),
    ((), "expand", (2, 2), {}),
    ((1, 3), "expand", (0, 3), {}),
    ((2, 3, 4), "flatten", (), {}),
    ((2, 3, 4), "flatten", (1,), {}),
    ((2, 3, 4), "flatten", (0, 1), {}),
    ((2, 3, 4), "flatten", (), {"start_dim": -2, "end_dim": -1}),
    ((), "flatten", (), {}),
    ((3, 4), "diagonal", (), {}),
    ((3, 4), "diagonal", (1,), {}),
    ((3, 4), "diagonal", (-2,), {}),
    ((3, 4), "diagonal", (9,), {}),
    ((2, 3, 4), "diagonal", (0, -1, 0), {}),
    ((2, 3, 4), "diagonal", (), {"offset": 1, "dim1": 1, "dim2": 2}),
    ((7,), "unfold", (0, 3, 2), {}),
    ((4, 5), "unfold", (1, 2, 1), {}),
    ((4, 5), "unfold", (-2, 4, 3), {}),
    ((2, 3), "detach", (), {}),
    ((), "detach", (), {}),
]

ERRORS_OF_VIEWS: list[Case] = [
    ((2, 3), "view", (5,), {}),
    ((2, 3), "view", (-1, -1), {}),
    ((2, 3), "view", (-1, 4), {}),
    ((2, 3), "view", (-2, 3), {}),
    ((2, 3), "view", (2**32, 2**32), {}),
    ((0, 3), "view", (-1, 0), {}),
    ((2, 3), "reshape", (5,), {}),
    ((2, 3), "reshape", (-1, 4), {}),
    ((2, 3), "as_strided", ((7,), (1,)), {}),
    ((2, 3), "as_strided", ((2, 2), (5, 1)), {}),
    ((2, 3), "as_strided", ((2,), (1,), 5), {}),
    ((2, 3), "as_strided", ((2,), (1,), -1), {}),
    ((2, 3), "as_strided", ((2, 2), (1,)), {}),
    ((2, 3), "as_strided", ((2,), (2**62,)), {}),
    ((2, 3), "as_strided", ((2**40, 2**40), (1, 1)), {}),
    ((2, 3), "as_strided", ((-2,), (1,)), {}),
    ((2, 3), "as_strided", ((1,), (1,), 6), {}),
    ((2, 3), "transpose", (0, 2), {}),
    ((2, 3), "transpose", (-3, 0), {}),
    ((2, 3), "transpose", (), {}),
    ((2, 3, 4), "permute", (0, 1), {}),
    ((2, 3, 4), "permute", (0, 1, 1), {}),
    ((2, 3, 4), "permute", (0, 1, 3), {}),
    ((2, 3, 4), "t", (), {}),
    ((2, 3), "select", (0, 2), {}),
    ((2, 3), "select", (0, -3), {}),
    ((2, 3), "select", (2, 0), {}),
    ((), "select", (0, 0), {}),
    ((5, 3), "narrow", (0, 3, 3), {}),
    ((5, 3), "narrow", (0, 6, 0), {}),
    ((5, 3), "narrow", (0, 0, -1), {}),
    ((5, 3), "narrow", (2, 0, 1), {}),
    ((5, 3), "narrow", (0, 1, 2**63 - 1), {}),
    ((2, 3), "squeeze", (2,), {}),
    ((2, 3), "unsqueeze", (3,), {}),
    ((2, 3), "unsqueeze", (-4,), {}),
    ((2, 3), "unsqueeze", (), {}),
    ((2, 3), "expand", (4, 3), {}),
    ((2, 3), "expand", (3,), {}),
    ((3,), "expand", (-1, 3), {}),
    ((1, 3), "expand", (-2, 3), {}),
    ((2, 3), "flatten", (1, 0), {}),
    ((2, 3), "flatten", (0, 2), {}),
    ((3, 4), "diagonal", (0, 0, 0), {}),
    ((3, 4), "diagonal", (0, 0, 2), {}),
    ((3,), "diagonal", (), {}),
    ((7,), "unfold", (0, 8, 1), {}),
    ((7,), "unfold", (0, 2, 0), {}),
    ((7,), "unfold", (0, -1, 1), {}),
    ((7,), "unfold", (1, 2, 1), {}),
    # a number that is not an integer, or too large for one, is not cut to fit
    ((2, 3), "transpose", (0.0, 1), {}),
    ((2, 3), "transpose", (2**70, 0), {}),
    ((2, 3), "select", (0, 0.9), {}),
    ((2, 3), "narrow", (0, 0.5, 1), {}),
    ((2, 3), "narrow", (0, 0, "1"), {}),
    ((2, 3), "squeeze", (0.5,), {}),
    ((2, 3), "unsqueeze", (0.5,), {}),
    ((2, 3), "flatten", (0, 1.5), {}),
    ((2, 3), "diagonal", (0.5,), {}),
    ((7,), "unfold", (0, 2.5, 1), {}),
    ((2, 3), "size", (0.9,), {}),
    ((2, 3), "stride", (0.9,), {}),
    ((2, 3), "as_strided", ((2,), (1,), 1.9), {}),
]


def identify(case: Case) -> str:
    """A readable name, like `(2, 3).view(6)`."""
    shape, method, arguments, keywords = case
    parts = [repr(argument) for argument in arguments]
    parts += [f"{name}={value}" for name, value in keywords.items()]
    return f"{shape}.{method}({', '.join(parts)})"


@pytest.mark.parametrize("case", VIEWS, ids=identify)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int16], ids=str)
def test_each_view_agrees_with_torch(case: Case, dtype: torch.dtype) -> None:
    shape, method, arguments, keywords = case
    ours, theirs = pair(shape, dtype)
    expect_like_torch(
        getattr(ours, method)(*arguments, **keywords),
        getattr(theirs, method)(*arguments, **keywords),
    )
    assert ours.shape == shape


@pytest.mark.parametrize("case", ERRORS_OF_VIEWS, ids=identify)
def test_each_view_that_torch_refuses_is_refused(case: Case) -> None:
    shape, method, arguments, keywords = case
    ours, theirs = pair(shape)
    with pytest.raises(ERRORS):
        getattr(theirs, method)(*arguments, **keywords)
    with pytest.raises(ERRORS):
        getattr(ours, method)(*arguments, **keywords)
    expect_like_torch(ours, theirs)


@pytest.mark.parametrize("step", [2**62, 2**63 - 1])
def test_a_step_past_the_end(step: int) -> None:
    ours, theirs = pair((5, 4))
    for start, end in [(None, None), (1, 3), (4, 99), (2, 2)]:
        found = ours.slice(0, start, end, step)
        assert found.tolist() == theirs.numpy()[start:end:step].tolist()


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("start", [None, 0, 2, -2, -99, 99])
@pytest.mark.parametrize("end", [None, 0, 3, -1, -99, 99, 2**63 - 1])
@pytest.mark.parametrize("step", [1, 2, 5])
def test_slice_agrees_with_aten(dim: int, start: int | None, end: int | None, step: int) -> None:
    ours, theirs = pair((5, 4))
    expect_like_torch(
        ours.slice(dim, start, end, step), torch.ops.aten.slice(theirs, dim, start, end, step)
    )
    expect_like_torch(
        ours.slice(dim=dim, start=start, end=end, step=step),
        torch.ops.aten.slice(theirs, dim, start, end, step),
    )


def test_slice_has_the_defaults_of_aten() -> None:
    ours, theirs = pair((5, 4))
    expect_like_torch(ours.slice(), theirs)
    expect_like_torch(ours.slice(1), theirs)
    expect_like_torch(ours.slice(0, 2), theirs[2:])
    expect_like_torch(ours.slice(start=1, end=3), theirs[1:3])


@pytest.mark.parametrize("arguments", [(2,), (-3,), (0, 0, 2, 0), ("0",), (0, "a")], ids=repr)
def test_slice_refuses_wrong_arguments(arguments: Any) -> None:
    with pytest.raises(ERRORS):
        at.zeros((5, 4)).slice(*arguments)


def test_slice_refuses_a_tensor_without_dimensions() -> None:
    with pytest.raises(ERRORS):
        at.zeros(()).slice()


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 3)], ids=str)
def test_alias_has_metadata_of_its_own(shape: tuple[int, ...]) -> None:
    ours, theirs = pair(shape)
    alias = ours.alias()
    expect_like_torch(alias, theirs)
    assert not alias.is_same(ours)
    if alias.numel():
        alias.fill_(5)
        assert torch.equal(theirs, torch.full(shape, 5.0))


def test_resizing_an_alias_leaves_the_original_alone() -> None:
    tensor = at.arange(6, dtype="float32").view(2, 3)
    for other in [tensor.alias(), tensor.detach()]:
        other.resize_(3, 2)
        assert other.shape == (3, 2)
        assert tensor.shape == (2, 3)
        assert other.data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("method", ["view", "reshape"])
def test_shape_arguments_may_be_an_array_ref(method: str) -> None:
    tensor = at.zeros((2, 6))
    assert getattr(tensor, method)(at.empty((3, 4)).sizes()).shape == (3, 4)
    assert getattr(tensor, method)(torch.Size([4, 3])).shape == (4, 3)
    assert tensor[0:1, 0:1].expand(at.empty((3, 4)).sizes()).shape == (3, 4)


def test_reshape_copies_only_if_it_must() -> None:
    ours, theirs = pair((2, 3))
    assert ours.reshape(6).data_ptr() == ours.data_ptr()
    copied = ours.t().reshape(6)
    assert copied.data_ptr() != ours.data_ptr()
    assert copied.tolist() == theirs.t().reshape(6).tolist()
    copied.fill_(0)
    assert ours.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert ours.t().flatten().tolist() == theirs.t().flatten().tolist()


def test_as_strided_cannot_leave_a_storage_that_came_from_outside() -> None:
    memory = np.zeros(100, dtype=np.float32)
    tensor = at.from_blob(memory.ctypes.data, (10,))
    assert tensor.as_strided((10,), (1,)).shape == (10,)
    for arguments in [((11,), (1,)), ((2,), (10,)), ((1,), (1,), 10), ((2, 5), (6, 1))]:
        with pytest.raises(ERRORS):
            tensor.as_strided(*arguments)
