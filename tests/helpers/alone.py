# SPDX-License-Identifier: Apache-2.0
"""Libraries that cannot be imported after others: their tests run in a process of their own.

`run_alone` runs them with pytest, and `importorskip` skips them everywhere else.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Library: why. Seen with Paddle 3.3 and TensorFlow 2.21; MindSpore 2.10.
ALONE = {
    "paddle": "its import after TensorFlow's ends the process",
    "mindspore": "its import after Paddle's fails",
}
_VARIABLE = "BRIDGE_TEST_ALONE"
_ROOT = Path(__file__).parents[2]


def importorskip(name: str) -> Any:
    """Do as ``pytest.importorskip``; skip a library of `ALONE` unless it is its process."""
    package = name.partition(".")[0]
    if package in ALONE and os.environ.get(_VARIABLE) != package:
        pytest.skip(f"{package} runs alone, since {ALONE[package]}")
    return pytest.importorskip(name, exc_type=ImportError)


def run_alone(name: str, file: str) -> int:
    """Run the tests of a library in a test file; return how many passed.

    Skips in that process, whose ``-k`` may select the caller too, and if the library is not
    installed; fails if one of its tests fails.
    """
    if os.environ.get(_VARIABLE):
        pytest.skip("this is the process of its own")
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", name, file]
    done = subprocess.run(
        command,
        cwd=_ROOT,
        env={**os.environ, _VARIABLE: name, "PYTHONPATH": os.pathsep.join([str(_ROOT), *sys.path])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    if done.returncode != 0 or passed is None:
        pytest.fail(
            f"exit status {done.returncode}\n{done.stdout[-8000:]}{done.stderr[-2000:]}",
            pytrace=False,
        )
    return int(passed.group(1))
