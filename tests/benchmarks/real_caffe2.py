# SPDX-License-Identifier: Apache-2.0
"""Feeding and fetching blobs and running operators, over the real Caffe2.

Runs where the environment variable CAFFE2_PYTHON names a Python 3.8 with PyTorch 1.8.1. One process
of it stays for the whole run and times the same loops, in turns with the bridge here.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from bridge import caffe2
from bridge.caffe2 import core, workspace
from tests.benchmarks.harness import Effort, Row, Timer, compare, loop
from tests.benchmarks.loop import REPEATS, feed_and_fetch, strings, text

VARIABLE = "CAFFE2_PYTHON"
CHILD = Path(__file__).with_name("caffe2_child.py")
ANSWER = "seconds "

# what, statement, must, goal
STATEMENTS = (
    ("`FeedBlob(torch)`", "FeedBlob('from_torch', t)", 0.12, 0.08),
    ("`FetchTorch`", "FetchTorch('from_torch')", 0.02, 0.012),
    ("`FeedBlob(numpy, 16 KiB)`", "FeedBlob('from_numpy', n)", 0.25, 0.15),
    ("`HasBlob`", "HasBlob('from_torch')", 0.6, 0.4),
    (
        "`Workspace.current.blobs[x].to_torch()`",
        "Workspace.current.blobs['from_torch'].to_torch()",
        0.08,
        0.06,
    ),
    ("`FeedBlob` of 100,000 `str`", "FeedBlob('text', text)", 0.5, 0.3),
    ("`FeedBlob` of 100,000 fixed-width bytes", "FeedBlob('octets', octets)", 0.5, 0.3),
    ("`FetchBlob` of 16 KiB", "FetchBlob('from_numpy')", 0.4, 0.3),
    ("`FeedBlob`, `FetchBlob` of 100,000 strings", "feed_and_fetch(strings)", 0.5, 0.3),
    ("`RunOperatorOnce` in Python", "RunOperatorOnce(in_python)", 0.25, 0.08),
    ("`RunOperatorOnce(Relu 64×64)`", "RunOperatorOnce(relu)", 0.5, 0.3),
)


class BenchmarkDouble(caffe2.Operator):
    """What the function of the same work is in the real Caffe2: see caffe2_child.py."""

    def RunOnDevice(self) -> None:
        """Y = 2 X."""
        x = self.Input(0)
        np.multiply(x.numpy(), 2, out=self.Output(0, x.sizes(), x.dtype()).numpy())


class RealCaffe2:
    """The other interpreter."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def loop(self, statement: str, repeats: int = REPEATS) -> Timer:
        """Time a statement over there."""

        def timer(number: int) -> float:
            stdin, stdout = self.process.stdin, self.process.stdout
            assert stdin is not None
            assert stdout is not None
            task = {"statement": statement, "number": number, "repeats": repeats}
            stdin.write(json.dumps(task) + "\n")
            stdin.flush()
            for line in stdout:
                if line.startswith(ANSWER):
                    return float(line[len(ANSWER) :])
            raise RuntimeError(f"the Python that {VARIABLE} names stopped at {statement}")

        return timer


@contextmanager
def real_caffe2(python: str) -> Iterator[RealCaffe2]:
    """Start the other interpreter and stop it at the end of the `with` block.

    Its standard error, where Caffe2 writes warnings of its own, is ours. It uses one thread.
    """
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [python, str(CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **one_thread},
    )
    try:
        yield RealCaffe2(process)
    finally:
        process.communicate()


def rows(effort: Effort) -> Iterator[Row]:
    """Measure ways in and out of a blob, and runs of operators; nothing without the variable."""
    python = os.environ.get(VARIABLE)
    if not python:
        return
    t = torch.zeros((2, 3))
    n = np.zeros(4096, np.float32)
    workspace.FeedBlob("from_torch", t)
    workspace.FeedBlob("from_numpy", n)
    workspace.FeedBlob("x", np.ones((64, 64), np.float32))
    caffe2.register_operator("BenchmarkDouble")(BenchmarkDouble)
    names = {
        "RunOperatorOnce": workspace.RunOperatorOnce,
        "in_python": core.CreateOperator("BenchmarkDouble", "x", "y"),
        "relu": core.CreateOperator("Relu", "x", "y"),
        "FeedBlob": workspace.FeedBlob,
        "FetchBlob": workspace.FetchBlob,
        "FetchTorch": workspace.FetchTorch,
        "HasBlob": workspace.HasBlob,
        "Workspace": workspace.Workspace,
        "text": text(),
        "octets": text().astype("S"),
        "feed_and_fetch": feed_and_fetch(workspace.FeedBlob, workspace.FetchBlob),
        "strings": strings(),
        "t": t,
        "n": n,
    }
    with real_caffe2(python) as real:
        for what, statement, must, goal in STATEMENTS:
            outcome = compare(loop(statement, **names), real.loop(statement), effort)
            yield Row(what, "real Caffe2", must, goal, outcome)
    workspace.ResetWorkspace()
