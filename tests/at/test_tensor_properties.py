# SPDX-License-Identifier: Apache-2.0
"""Property-based: views, indexing and assignment on random shapes, against NumPy and torch."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bridge
from bridge import at

from .comparing import ERRORS, address, expect_like_numpy, expect_like_torch, telling_strides
from .strategies import arrays, broadcastable, indexes, shapes, view_steps


def expect_same_memory(ours: at.Tensor, theirs: np.ndarray) -> None:
    """Check address and strides; neither can be told of an empty tensor."""
    if theirs.size:
        assert ours.data_ptr() == address(theirs)
        strides = [stride // theirs.itemsize for stride in theirs.strides]
        assert telling_strides(ours.sizes(), ours.strides()) == telling_strides(
            theirs.shape, strides
        )


@given(st.data())
def test_any_index_reads_as_numpy_does(data: st.DataObject) -> None:
    array = data.draw(arrays())
    index = data.draw(indexes(array.shape))
    ours, theirs = bridge.from_dlpack(array)[index], array[index]
    expect_like_numpy(ours, theirs)
    if isinstance(theirs, np.ndarray):
        expect_same_memory(ours, theirs)


@given(st.data())
def test_an_indexed_view_shares_memory(data: st.DataObject) -> None:
    array = data.draw(arrays())
    index = data.draw(indexes(array.shape))
    expected = array.copy()
    expected[index] = 1
    bridge.from_dlpack(array)[index].fill_(1)
    np.testing.assert_array_equal(array, expected)


@given(st.data())
def test_assigning_a_scalar_at_any_index_writes_as_numpy_does(data: st.DataObject) -> None:
    array = data.draw(arrays())
    index = data.draw(indexes(array.shape))
    value = data.draw(st.integers(0, 99) | st.booleans())
    expected = array.copy()
    expected[index] = value
    bridge.from_dlpack(array)[index] = value
    np.testing.assert_array_equal(array, expected)


@given(st.data())
def test_assigning_a_value_that_broadcasts_writes_as_numpy_does(data: st.DataObject) -> None:
    array = data.draw(arrays())
    index = data.draw(indexes(array.shape))
    value = data.draw(broadcastable(np.shape(array[index])))
    expected = array.copy()
    expected[index] = value
    wrap = data.draw(st.sampled_from([np.asarray, bridge.asarray, torch.from_numpy]))
    bridge.from_dlpack(array)[index] = wrap(value)
    np.testing.assert_array_equal(array, expected)


@given(st.data())
def test_two_indexes_one_after_the_other_read_as_in_numpy(data: st.DataObject) -> None:
    array = data.draw(arrays())
    first = data.draw(indexes(array.shape))
    theirs = np.asarray(array[first])
    second = data.draw(indexes(theirs.shape))
    expect_like_numpy(bridge.from_dlpack(array)[first][second], theirs[second])


@given(st.data())
def test_a_chain_of_views_copies_where_numpy_copies(data: st.DataObject) -> None:
    """Values follow NumPy at every step; `reshape` leaves the storage just where NumPy copies."""
    theirs = data.draw(arrays())
    ours = bridge.from_dlpack(theirs)
    for _ in range(data.draw(st.integers(1, 4))):
        if theirs.ndim > 7 or theirs.size > 500:
            break
        method, arguments, expected = data.draw(view_steps(theirs))
        result = getattr(ours, method)(*arguments)
        assert result.shape == expected.shape
        np.testing.assert_array_equal(result.numpy(), expected)
        if expected.size:
            stays = method != "reshape" or np.may_share_memory(theirs, expected)
            assert stays == (result.storage().data_ptr() == ours.storage().data_ptr())
        ours, theirs = result, expected


@given(shapes, st.data())
def test_view_and_reshape_agree_with_torch(shape: tuple[int, ...], data: st.DataObject) -> None:
    theirs = torch.arange(math.prod(shape)).reshape(shape)
    order = data.draw(st.permutations(range(len(shape))))
    moved, ours = theirs.permute(order), bridge.from_dlpack(theirs).permute(order)
    target = data.draw(st.permutations(shape))
    target = data.draw(st.sampled_from([target, [math.prod(shape)], [1, *target], [*target, 1]]))
    if target and math.prod(shape) and data.draw(st.booleans()):
        target = [-1, *target[1:]]
    try:
        expected = moved.view(target)
    except RuntimeError:
        with pytest.raises(ERRORS):
            ours.view(target)
        copied = ours.reshape(target)
        assert copied.tolist() == moved.reshape(target).tolist()
        assert copied.data_ptr() != theirs.data_ptr()
        return
    expect_like_torch(ours.view(target), expected)
    expect_like_torch(ours.reshape(target), expected)


@given(st.data())
def test_as_strided_agrees_with_torch(data: st.DataObject) -> None:
    theirs = torch.arange(data.draw(st.integers(0, 20)))
    ours = bridge.from_dlpack(theirs)
    rank = data.draw(st.integers(0, 4))
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank))
    strides = data.draw(st.lists(st.integers(0, 6), min_size=rank, max_size=rank))
    offset = data.draw(st.none() | st.integers(0, 12))
    if 0 in sizes:
        # Nothing is read through an empty view; where its start may lie is open.
        assert ours.as_strided(sizes, strides).numel() == 0
        return
    try:
        expected = theirs.as_strided(sizes, strides, offset)
    except RuntimeError:
        with pytest.raises(ERRORS):
            ours.as_strided(sizes, strides, offset)
        return
    expect_like_torch(ours.as_strided(sizes, strides, offset), expected)


@given(shapes, st.data())
def test_methods_that_make_views_agree_with_torch(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    theirs = torch.arange(math.prod(shape)).reshape(shape)
    ours = bridge.from_dlpack(theirs)
    rank = len(shape)
    dims = st.integers(-rank - 2, rank + 1)
    sizes = st.lists(st.integers(-1, 4), max_size=6)
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("squeeze", ()),
        ("squeeze", (data.draw(dims),)),
        ("unsqueeze", (data.draw(dims),)),
        ("flatten", (data.draw(dims), data.draw(dims))),
        ("transpose", (data.draw(dims), data.draw(dims))),
        ("select", (data.draw(dims), data.draw(dims))),
        ("narrow", (data.draw(dims), data.draw(dims), data.draw(dims))),
        ("diagonal", (data.draw(dims), data.draw(dims), data.draw(dims))),
        ("unfold", (data.draw(dims), data.draw(dims), data.draw(dims))),
        ("expand", (data.draw(sizes),)),
        ("permute", (data.draw(st.lists(dims, max_size=5)),)),
    ]
    method, arguments = data.draw(st.sampled_from(calls))
    if method == "expand" and -1 in arguments[0][: max(0, len(arguments[0]) - rank)]:
        # torch lets this pass beside a size of 0, and makes a tensor of a negative size.
        with pytest.raises(ERRORS):
            ours.expand(*arguments)
        return
    try:
        expected = getattr(theirs, method)(*arguments)
    except (RuntimeError, IndexError, ValueError, TypeError):
        with pytest.raises(ERRORS):
            getattr(ours, method)(*arguments)
        return
    expect_like_torch(getattr(ours, method)(*arguments), expected)


@given(st.data())
def test_any_view_is_copied_with_its_elements(data: st.DataObject) -> None:
    array = data.draw(arrays())
    index = data.draw(indexes(array.shape))
    view, expected = bridge.from_dlpack(array)[index], np.asarray(array[index])
    for copied in [view.clone(), view.contiguous(), at.empty_like(view).copy_(view)]:
        expect_like_numpy(copied, expected)
    assert view.contiguous().is_contiguous()
    assert view.equal(view.clone())


@given(st.data())
def test_copy_writes_into_any_view(data: st.DataObject) -> None:
    array = data.draw(arrays())
    index = data.draw(indexes(array.shape))
    expected = array.copy()
    source = data.draw(broadcastable(np.shape(array[index])))
    expected[index] = source
    view = bridge.from_dlpack(array)[index]
    assert view.copy_(bridge.from_dlpack(source)) is view
    np.testing.assert_array_equal(array, expected)
