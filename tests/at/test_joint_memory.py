# SPDX-License-Identifier: Apache-2.0
"""Operations on memory that was imported apart, and overlaps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10


def test_views_of_one_array_that_were_imported_apart_overlap() -> None:
    array = np.arange(8.0)
    later, earlier = bridge.from_dlpack(array[1:]), bridge.from_dlpack(array[:-1])
    with pytest.raises(c10.EnforceNotMet, match="single memory location"):
        later.add_(earlier)
    with pytest.raises(c10.EnforceNotMet, match="single memory location"):
        at.cumsum(earlier, 0, out=later)
    with pytest.raises(c10.EnforceNotMet, match="single memory location"):
        later += torch.from_numpy(array)[:-1]
    assert array.tolist() == list(range(8))


def test_the_same_elements_imported_twice_are_written_in_place() -> None:
    array = np.arange(6.0).reshape(2, 3)
    a, b = bridge.from_dlpack(array), bridge.from_dlpack(array)
    assert a.add_(b) is a
    assert array.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert at.mul(a, b, out=b) is b
    assert array.tolist() == [[0, 4, 16], [36, 64, 100]]


def test_elements_that_alternate_do_not_overlap() -> None:
    array = np.arange(8)
    bridge.from_dlpack(array[::2]).add_(bridge.from_dlpack(array[1::2]))
    assert array.tolist() == [1, 1, 5, 3, 9, 5, 13, 7]


def test_a_torch_tensor_of_the_same_memory_comes_back_as_itself() -> None:
    array = np.arange(4.0)
    t, x = torch.from_numpy(array), bridge.from_dlpack(array)
    assert at.add(x, 1, out=t) is t
    assert array.tolist() == [1, 2, 3, 4]


def test_an_operand_of_another_type_lies_in_the_same_memory() -> None:
    array = np.zeros(4, dtype=np.int64)
    numbers, floats = bridge.from_dlpack(array), bridge.from_dlpack(array.view(np.float64))
    numbers.add_(2)
    with pytest.raises(c10.EnforceNotMet, match="single memory location"):
        bridge.from_dlpack(array.view(np.int32)[1:5]).add_(numbers)
    assert floats.add(1.0).tolist() == [1.0] * 4


def test_read_only_memory_that_overlaps_stays_as_it_is() -> None:
    array = np.arange(6.0)
    frozen = array[1:]
    frozen.flags.writeable = False
    readonly, writable = bridge.from_dlpack(frozen), bridge.from_dlpack(array[:-1])
    with pytest.raises(c10.EnforceNotMet, match="read-only"):
        readonly.add_(writable)
    with pytest.raises(c10.EnforceNotMet):
        writable.add_(readonly)
    assert array.tolist() == list(range(6))
