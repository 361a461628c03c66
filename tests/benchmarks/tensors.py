# SPDX-License-Identifier: Apache-2.0
"""Making tensors, asking for their sizes, viewing and growing them, over torch and lists."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import torch

from bridge import at, c10, caffe2
from tests.benchmarks.harness import Case, Effort, Row, Timer, loop, measured


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
    return measured(_cases(effort.cycles), effort)


def _cases(steps: int) -> Iterator[Case]:
    make = "empty((64, 64))"
    ours, peers = loop(make, empty=at.empty), loop(make, empty=torch.empty)
    yield Case(f"`at.{make}`", f"`torch.{make}`", 0.3, 0.18, ours, peers)
    x, t = at.zeros((4, 6)), torch.zeros((4, 6))
    yield Case("`sizes()`", "`t.shape`", 0.5, 0.25, loop("x.sizes()", x=x), loop("t.shape", t=t))
    yield Case("`x.shape`", "`t.shape`", 0.5, 0.4, loop("x.shape", x=x), loop("t.shape", t=t))
    dims, options = (64, 64), c10.dtype("float32")
    ours = loop("empty(dims, options)", empty=caffe2.empty, dims=dims, options=options)
    peers = loop("empty(dims)", empty=torch.empty, dims=dims)
    yield Case("`caffe2.empty(dims, options)`", "`torch.empty(dims)`", 0.6, 0.4, ours, peers)
    for view in ("x.transpose(0, 1)", "x.view(6, 4)", "x[0:2]"):
        what = f"`{view.removeprefix('x.')}`"
        yield Case(what, "torch's", 0.25, 0.12, loop(view, x=x), loop(view, x=t))
    grown = "a million times `Extend(1)`"
    yield Case(grown, "`list.append`", 2.0, 1.7, extend(steps), append(steps))
