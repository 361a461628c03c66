# SPDX-License-Identifier: Apache-2.0
"""Objects with `__array__` and nothing else: every door takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridge


class Column:
    """As pandas and xarray have it; it gives its own memory where it may."""

    def __init__(self, held: np.ndarray[Any, Any]) -> None:
        self.held = held

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if dtype is not None and dtype != self.held.dtype:
            return self.held.astype(dtype)
        return self.held.copy() if copy else self.held


class Computed:
    """It has no memory before it is asked."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("computed anew each time")
        return np.arange(3.0)


class Failing:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise RuntimeError("not loaded")


@pytest.mark.parametrize("copy", [None, False])
def test_memory_of_the_returned_array_is_shared(copy: bool | None) -> None:
    held = np.arange(3.0)
    x = bridge.asarray(Column(held), copy=copy)
    assert x.data_ptr() == held.ctypes.data
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("copy", [None, False, True])
def test_a_method_of_the_object_alone_is_called(copy: bool | None) -> None:
    """Which NumPy takes as well as one of the class."""
    held = np.arange(3.0)
    x = type("Loaded", (), {})()
    x.__array__ = Column(held).__array__
    found = bridge.from_dlpack(x, copy=copy)
    assert found.tolist() == [0, 1, 2]
    assert (found.data_ptr() == held.ctypes.data) is not bool(copy)


def test_copy_true_and_a_cast_copy() -> None:
    held = np.arange(3.0)
    x = bridge.asarray(Column(held), copy=True)
    assert x.data_ptr() != held.ctypes.data
    assert bridge.asarray(Column(held), dtype="float32").tolist() == [0, 1, 2]


def test_an_array_that_is_computed_anew_is_refused_with_copy_false() -> None:
    assert bridge.asarray(Computed()).tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="computed anew"):
        bridge.asarray(Computed(), copy=False)


def test_errors_say_whose_they_are() -> None:
    with pytest.raises(BufferError, match=r"Failing\.__array__.*not loaded"):
        bridge.asarray(Failing())
    with pytest.raises(BufferError):
        bridge.asarray(Column(np.array([None])))


@pytest.mark.parametrize("entry", [bridge.from_dlpack, bridge.to_torch, bridge.to_numpy])
def test_every_door_takes_them(entry: Any) -> None:
    held = np.arange(3.0)
    assert bridge.shares_memory(entry(Column(held), copy=False), held)
    with pytest.raises(TypeError):
        entry(Column)
