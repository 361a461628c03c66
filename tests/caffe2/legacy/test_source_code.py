# SPDX-License-Identifier: Apache-2.0
"""Old code makes numbers of arrays that have one element."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2.legacy.source_code import ITEM, compiled, item


def run(source: str, **names: Any) -> Any:
    names[ITEM] = item
    exec(compiled(source, "old.py"), names)
    return names["result"]


@pytest.mark.parametrize("x", [np.array([3]), np.array([[3.0]]), np.array(3), 3, np.float32(3)])
def test_numbers_of_arrays(x: Any) -> None:
    assert run("result = int(x), float(x), [int(float(x))]", x=x) == (3, 3.0, [3])


def test_other_calls_are_unchanged() -> None:
    assert run("result = int('11', 2), int(), float('inf'), int(*['7'])") == (3, 0, np.inf, 7)
    assert run("result = x.int([1])", x=type("X", (), {"int": staticmethod(list)})) == [1]
    with pytest.raises(TypeError):
        run("result = int(x)", x=np.array([1, 2]))


def test_lines_are_those_of_the_source() -> None:
    with pytest.raises(ValueError, match="abc") as info:
        run("\n\nresult = int(\n'abc')\n")
    assert info.traceback[-1].lineno + 1 == 3
