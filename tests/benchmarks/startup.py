# SPDX-License-Identifier: Apache-2.0
"""Importing the bridge, over importing NumPy: each time in an interpreter of its own."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

from tests.benchmarks.harness import Effort, Row, Timer, compare

CODE = """
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""


def importing(statement: str) -> Timer:
    """Time the import statement alone; starting the interpreter is not counted."""

    def timer(number: int) -> float:
        code = CODE.format(statement=statement)
        total = 0.0
        for _ in range(number):
            done = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True
            )
            total += float(done.stdout)
        return total / number

    return timer


def rows(effort: Effort) -> Iterator[Row]:
    """Measure the import, warm from the first one."""
    once = replace(effort, samples=1)  # an interpreter each: long enough by itself
    numpy = importing("import numpy")
    outcome = compare(importing("import bridge"), numpy, once)
    yield Row("`import bridge`", "`import numpy`", 0.32, 0.25, outcome)
    # What the import leaves until the first use.
    outcome = compare(importing("from bridge import at, caffe2, from_dlpack"), numpy, once)
    yield Row("`import bridge`, and all of its core", "`import numpy`", math.inf, math.inf, outcome)
