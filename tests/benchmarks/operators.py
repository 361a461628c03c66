# SPDX-License-Identifier: Apache-2.0
"""Nets of one operator, or of two that undo each other, over the real Caffe2; one thread each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bridge.caffe2 import core, workspace
from tests.benchmarks.harness import Effort, Row, compare, loop
from tests.benchmarks.loop import fed_runs
from tests.benchmarks.nets import REAL, Bounds, create, load_there, one_thread, running
from tests.benchmarks.operator_sizes import cases
from tests.benchmarks.real_caffe2 import VARIABLE, real_caffe2
from tests.benchmarks.small_nets import Made, sparse_training

Makes = Callable[[np.random.RandomState], Made]


def single(op: str, feeds: dict[str, Any], outputs: list[str], **arguments: Any) -> Made:
    """Return a net of one operator on all the feeds."""
    net = core.Net(f"one {op}")
    getattr(net, op)(list(feeds), outputs, **arguments)
    return Made(net.Proto(), feeds, [])


def step_on_rows(random: np.random.RandomState, op: str, rows: int) -> Made:
    """Return a step of a sparse optimizer on `rows` of 100,000 rows of 64."""
    table, width = 100_000, 64
    feeds: dict[str, Any] = {"param": random.randn(table, width).astype(np.float32)}
    if op == "SparseAdam":
        feeds["first"] = np.zeros((table, width), np.float32)
    moment = (table,) if op.startswith("RowWise") else (table, width)
    feeds["moment"] = np.full(moment, 0.1, np.float32)
    outputs = list(feeds)
    feeds["indices"] = random.permutation(table)[:rows].astype(np.int64)
    feeds["grad"] = random.randn(rows, width).astype(np.float32)
    feeds["lr"] = np.full(1, -1e-4, np.float32)
    if op == "SparseAdam":
        feeds["iteration"] = np.full(1, 100, np.int64)
    return single(op, feeds, outputs)


def look_up(random: np.random.RandomState, op: str) -> Made:
    """Return the reduction of 64 segments of 0 to 40 rows of 100,000 rows of 64."""
    lengths = random.randint(0, 41, 64).astype(np.int32)
    n = int(lengths.sum())
    feeds: dict[str, Any] = {"data": random.randn(100_000, 64).astype(np.float32)}
    if "Weighted" in op:
        feeds["weights"] = random.rand(n).astype(np.float32)
    if op.startswith("Sparse"):
        feeds["indices"] = random.randint(0, 100_000, n).astype(np.int64)
    else:
        feeds["data"] = feeds["data"][:n]
    return single(op, feeds | {"lengths": lengths}, ["y"])


def top(random: np.random.RandomState) -> Made:
    """Return TopK of 200 rows."""
    return single("TopK", {"x": random.randn(200, 5000).astype(np.float32)}, ["y", "i"], k=50)


def bytes_and_back(random: np.random.RandomState) -> Made:
    """Return rows quantized to bytes, and dequantized."""
    net = core.Net("bytes and back")
    net.FloatToFused8BitRowwiseQuantized("x", "q")
    net.Fused8BitRowwiseQuantizedToFloat("q", "y")
    return Made(net.Proto(), {"x": random.randn(1000, 64).astype(np.float32)}, [])


def best_boxes(random: np.random.RandomState) -> Made:
    """Return BoxWithNMSLimit of 100 boxes of 8 classes."""
    n, classes = 100, 8
    corners = random.rand(n, classes, 2).astype(np.float32) * 80
    sides = random.rand(n, classes, 2).astype(np.float32) * 30
    feeds = {
        "scores": random.rand(n, classes).astype(np.float32),
        "boxes": np.concatenate([corners, corners + sides], 2).reshape(n, -1),
    }
    return single("BoxWithNMSLimit", feeds, ["s", "b", "c"], nms=0.5, detections_per_im=100)


def beams(random: np.random.RandomState) -> Made:
    """Return the beam search in 4 sequences of 50 time steps."""
    x = random.randn(50, 4, 20).astype(np.float32) * 2
    odds = np.exp(x) / np.exp(x).sum(2, keepdims=True)
    return single("CTCBeamSearchDecoder", {"x": odds}, ["lengths", "labels", "odds"], beam_width=10)


def subjects() -> Iterator[tuple[str, Bounds, Makes]]:
    """Return what is measured: the row's name, its bounds, and how the net is made."""
    for op, rows, bounds in (
        ("SparseAdagrad", 5000, (2, 1)),
        ("SparseAdagrad", 4, (20, 5)),
        ("SparseAdam", 5000, (2, 1)),
        ("RowWiseSparseAdagrad", 5000, (1.5, 1)),
    ):
        what = f"`{op}` of {rows:,} of 100,000 rows of 64"
        yield what, bounds, lambda random, op=op, rows=rows: step_on_rows(random, op, rows)
    yield "`TopK` 200×5,000, k = 50", (2, 1), top
    yield "`FloatToFused8BitRowwiseQuantized` and back, 1,000×64", (2, 1), bytes_and_back
    yield "`BoxWithNMSLimit` 100×8", (1.5, 1), best_boxes
    yield "`CTCBeamSearchDecoder` 50×4×20", (1.2, 1), beams
    for op in (
        "SparseLengthsSum",
        "SparseLengthsMean",
        "SparseLengthsWeightedSum",
        "LengthsSum",
        "LengthsMean",
    ):
        yield f"`{op}` of 64 segments", (1.5, 1), lambda random, op=op: look_up(random, op)
    for what, (op, feeds, outputs, args) in cases().items():
        made = single(op, feeds, outputs, **args)
        yield what, (2, 1), lambda random, made=made: made


def rows(effort: Effort) -> Iterator[Row]:
    """Measure each; nothing without the variable."""
    python = os.environ.get(VARIABLE)
    if not python:
        return
    with one_thread(), real_caffe2(python) as real, tempfile.TemporaryDirectory() as folder:
        for what, bounds, make in subjects():
            made = make(np.random.RandomState(0))
            ours = running(create(made))
            theirs = load_there(real, made, Path(folder))
            yield Row(what, REAL, *bounds, compare(ours, theirs, effort))
        made = sparse_training()
        run = fed_runs(workspace.FeedBlob, workspace.RunNet, create(made))
        load_there(real, made, Path(folder))
        theirs = real.loop("few_rows()", 1)
        outcome = compare(loop("run()", repeats=1, run=run), theirs, effort)
        yield Row("20 steps of training, other rows each time", REAL, 3, 1.5, outcome)
