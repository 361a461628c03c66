# SPDX-License-Identifier: Apache-2.0
"""Feeding and fetching blobs, over the real Caffe2.

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

from bridge.caffe2 import workspace
from tests.benchmarks.harness import Effort, Row, Timer, compare, loop
from tests.benchmarks.loop import REPEATS

VARIABLE = "CAFFE2_PYTHON"
CHILD = Path(__file__).with_name("caffe2_child.py")
ANSWER = "seconds "

# what, statement, must, goal
STATEMENTS = (
    ("`FeedBlob(torch)`", "FeedBlob('from_torch', t)", 0.12, 0.08),
    ("`FetchTorch`", "FetchTorch('from_torch')", 0.02, 0.012),
    ("`FeedBlob(numpy, 16 KiB)`", "FeedBlob('from_numpy', n)", 0.25, 0.15),
    ("`FetchBlob` of 16 KiB", "FetchBlob('from_numpy')", 0.4, 0.3),
)


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

    Its standard error, where Caffe2 writes warnings of its own, is ours.
    """
    process = subprocess.Popen(
        [python, str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield RealCaffe2(process)
    finally:
        process.communicate()


def rows(effort: Effort) -> Iterator[Row]:
    """Measure the four ways in and out of a blob; nothing where the variable is not set."""
    python = os.environ.get(VARIABLE)
    if not python:
        return
    t = torch.zeros((2, 3))
    n = np.zeros(4096, np.float32)
    workspace.FeedBlob("from_torch", t)
    workspace.FeedBlob("from_numpy", n)
    names = {
        "FeedBlob": workspace.FeedBlob,
        "FetchBlob": workspace.FetchBlob,
        "FetchTorch": workspace.FetchTorch,
        "t": t,
        "n": n,
    }
    with real_caffe2(python) as real:
        for what, statement, must, goal in STATEMENTS:
            outcome = compare(loop(statement, **names), real.loop(statement), effort)
            yield Row(what, "real Caffe2", must, goal, outcome)
    workspace.ResetWorkspace()
