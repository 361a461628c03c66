# SPDX-License-Identifier: Apache-2.0
"""Making tensors, asking for their sizes, viewing and growing them, over torch and lists."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import torch

from bridge import at, caffe2
from tests.benchmarks.harness import Effort, Row, Timer, compare, loop

VIEWS = {
    "`transpose(0, 1)`": "x.transpose(0, 1)",
    "`view(6, 4)`": "x.view(6, 4)",
    "`x[0:2]`": "x[0:2]",
}


def extend(steps: int) -> Timer:
    """Time a tensor that grows row by row, from one row on; the buffers it takes included."""

    def timer(number: int) -> float:
        tensor = caffe2.Tensor([1], "cpu")
        tensor.mutable_data("float32")
        start = perf_counter()
        for _ in range(steps):
            tensor.Extend(1)
        return (perf_counter() - start) / steps

    return timer


def append(steps: int) -> Timer:
    """Time a list that grows as `extend` has a tensor do."""

    def timer(number: int) -> float:
        values: list[int] = []
        start = perf_counter()
        for _ in range(steps):
            values.append(1)
        return (perf_counter() - start) / steps

    return timer


def rows(effort: Effort) -> Iterator[Row]:
    """Measure each on a small tensor, torch's on one of the same shape."""
    yield Row(
        "`at.empty((64, 64))`",
        "`torch.empty((64, 64))`",
        0.3,
        0.18,
        compare(
            loop("empty((64, 64))", empty=at.empty),
            loop("empty((64, 64))", empty=torch.empty),
            effort,
        ),
    )
    x, t = at.zeros((4, 6)), torch.zeros((4, 6))
    sizes = compare(loop("x.sizes()", x=x), loop("t.shape", t=t), effort)
    yield Row("`sizes()`", "`t.shape`", 0.5, 0.25, sizes)
    for what, statement in VIEWS.items():
        outcome = compare(loop(statement, x=x), loop(statement, x=t), effort)
        yield Row(what, "torch's", 0.25, 0.12, outcome)
    grown = compare(extend(effort.cycles), append(effort.cycles), effort)
    yield Row("a million times `Extend(1)`", "`list.append`", 2.0, 1.7, grown)
