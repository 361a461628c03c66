# SPDX-License-Identifier: Apache-2.0
"""Converting one wrapper into the other, over making any Python object that holds a reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bridge import at, caffe2
from tests.benchmarks.harness import Case, Effort, Row, loop, measured


class Slot:
    """The least that a wrapper in Python could be: one slot, filled by the constructor."""

    __slots__ = ("impl",)

    def __init__(self, impl: Any) -> None:
        self.impl = impl


def rows(effort: Effort) -> Iterator[Row]:
    """Measure each direction."""
    a = at.empty((2, 3))
    c = caffe2.Tensor(a)
    slot = loop("Slot(a)", Slot=Slot, a=a)
    over = "making an object of a Python class with one slot"
    to_caffe2 = loop("Tensor(a)", Tensor=caffe2.Tensor, a=a)
    to_at = loop("Tensor(c)", Tensor=at.Tensor, c=c)
    return measured(
        [
            Case("`caffe2.Tensor(at_tensor)`", over, 0.6, 0.3, to_caffe2, slot),
            Case("`at.Tensor(caffe2_tensor)`", over, 0.6, 0.3, to_at, slot),
        ],
        effort,
    )
