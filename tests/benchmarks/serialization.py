# SPDX-License-Identifier: Apache-2.0
"""Blobs to messages and back, over the real Caffe2 and over a copy of the same bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bridge.caffe2 import workspace
from tests.benchmarks.blob_values import values
from tests.benchmarks.harness import Effort, Row, Timer, compare, loop
from tests.benchmarks.real_caffe2 import VARIABLE, real_caffe2

NBYTES = 64 << 20
STRINGS = 100_000

# kind, what, must and goal of writing, must and goal of reading
KINDS = (
    ("float32", "64 MiB of float32", 0.25, 0.15, 0.3, 0.18),
    ("uint8", "64 MiB of uint8", 0.2, 0.12, 0.2, 0.1),
    ("int64", "64 MiB of int64", 0.7, 0.45, 0.6, 0.32),
    ("strings", "100,000 strings", 0.3, 0.15, 0.5, 0.3),
)


def rows(effort: Effort) -> Iterator[Row]:
    """Measure writing and reading; what is read goes into the blob that is there already."""
    nbytes = min(NBYTES, effort.huge)
    few = replace(effort, rounds=min(effort.rounds, 11), samples=1, seconds=0.0)
    array = values("float32", nbytes // 4)
    copy = np.zeros_like(array)
    copying = loop("copyto(copy, array)", repeats=1, copyto=np.copyto, copy=copy, array=array)
    for statement, what, must, goal in (
        ("SerializeBlob('float32')", "`SerializeBlob` of 64 MiB of float32", 3.5, 2.2),
        ("DeserializeBlob('y', message)", "`DeserializeBlob` of 64 MiB of float32", 1.6, 1.3),
    ):
        timer = ours(statement, "float32", array.size)
        yield Row(what, "`np.copyto`", must, goal, compare(timer, copying, few))
    python = os.environ.get(VARIABLE)
    if python:
        yield from over_caffe2(python, nbytes, few)
    workspace.ResetWorkspace()


def ours(statement: str, kind: str, n: int) -> Timer:
    """Time a statement here, over the blob `kind` of `n` values and its message."""
    workspace.FeedBlob(kind, values(kind, n))
    message = workspace.SerializeBlob(kind)
    workspace.DeserializeBlob("y", message)
    return loop(
        statement,
        repeats=1,
        SerializeBlob=workspace.SerializeBlob,
        DeserializeBlob=workspace.DeserializeBlob,
        message=message,
    )


def over_caffe2(python: str, nbytes: int, effort: Effort) -> Iterator[Row]:
    """Measure both ways for each kind of value."""
    with real_caffe2(python) as real:
        for kind, what, *bounds in KINDS:
            strings = kind == "strings"
            n = min(STRINGS, nbytes) if strings else nbytes // np.dtype(kind).itemsize
            real.loop(f"hold({kind!r}, {n})", repeats=1)(1)
            writing = f"SerializeBlob({kind!r})"
            outcome = compare(ours(writing, kind, n), real.loop(writing, 1), effort)
            yield Row(f"`SerializeBlob` of {what}", "real Caffe2", *bounds[:2], outcome)
            reading = ours("DeserializeBlob('y', message)", kind, n)
            theirs = real.loop(f"DeserializeBlob('y', messages[{kind!r}])", 1)
            outcome = compare(reading, theirs, effort)
            yield Row(f"`DeserializeBlob` of {what}", "real Caffe2", *bounds[2:], outcome)
