# SPDX-License-Identifier: Apache-2.0
"""Old code makes numbers as before NumPy 2: of arrays of one element, of integers too large."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bridge.caffe2.legacy.source import ASSIGN, ITEM, WRAP, assign, compiled, item, wrap


def run(source: str, **names: Any) -> Any:
    names[ITEM] = item
    names[ASSIGN] = assign
    names[WRAP] = wrap
    exec(compiled(source, "old.py"), names)
    return names["result"]


@pytest.mark.parametrize("x", [np.array([3]), np.array([[3.0]]), np.array(3), 3, np.float32(3)])
def test_arrays_of_one_element_convert_to_numbers(x: Any) -> None:
    assert run("result = int(x), float(x), [int(float(x))]", x=x) == (3, 3.0, [3])
    assert run("result = math.pow(2, x), math.hypot(*[x])", x=3, math=math) == (8.0, 3.0)
    assert run("result = math.pow(x, 2) * 2", x=x, math=math) == 18.0


def test_other_calls_are_unchanged() -> None:
    assert run("result = int('11', 2), int(), float('inf'), int(*['7'])") == (3, 0, np.inf, 7)
    assert run("result = x.int([1])", x=type("X", (), {"int": staticmethod(list)})) == [1]
    with pytest.raises(TypeError):
        run("result = int(x)", x=np.array([1, 2]))


def test_errors_name_the_lines_of_the_source() -> None:
    with pytest.raises(ValueError, match="abc") as info:
        run("\n\nresult = int(\n'abc')\n")
    assert info.traceback[-1].lineno + 1 == 3


def test_arrays_of_one_element_are_assigned_to_elements() -> None:
    source = """
y, z, d, some = np.zeros(3), np.zeros((2, 2)), {}, [0, 0]
y[1] = np.array([5.0])
y[0], z[1, 0], d["key"], some[1] = np.ones((1, 1)), np.array([7.0]), np.array([8.0]), np.array([9])
z[0] = np.array([6.0])
y[2:] = np.array([4.0])
a = y[2] = 3.5
result = y, z, d, some, a
"""
    y, z, d, some, a = run(source, np=np)
    assert (y.tolist(), z.tolist(), a) == ([1.0, 5.0, 3.5], [[6.0, 6.0], [7.0, 0.0]], 3.5)
    assert isinstance(d["key"], np.ndarray)
    assert isinstance(some[1], np.ndarray)
    with pytest.raises(ValueError, match="sequence"):
        run("result = 0\ny = np.zeros(2)\ny[0] = np.ones(2)", np=np)


def test_values_are_there_before_the_first_is_assigned() -> None:
    source = "x = [1, 2]\nx[0], x[1] = x[1], x[0]\nresult = x"
    assert run(source) == [2, 1]


def test_integers_too_large_for_their_type_wrap_around() -> None:
    source = """
dtype = np.dtype("int32")
result = np.array([2**41 + 5, -1], dtype=np.uint8), np.uint16(-1), dtype.type(0xDEADBEEF)
"""
    array, small, typed = run(source, np=np)
    assert (array.tolist(), array.dtype) == ([5, 255], np.uint8)
    assert (small, type(small)) == (65535, np.uint16)
    assert (typed, type(typed)) == (0xDEADBEEF - 2**32, np.int32)


def test_other_errors_of_large_numbers_are_unchanged() -> None:
    with pytest.raises(OverflowError):
        run("result = x.type(1)", x=type("X", (), {"type": lambda self, i: int(float("inf"))})())
    with pytest.raises(OverflowError):
        run("result = np.array(10**30, dtype=np.int32)", np=np)
    assert run("result = np.array([1.5], dtype=np.float32).dtype", np=np) == np.float32
