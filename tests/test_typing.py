# SPDX-License-Identifier: Apache-2.0
"""What type checkers make of the package: of a user's program, and of a user's mistakes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bridge

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "typed_programs"
# Types that torch's newest stubs have; older ones have other signatures.
pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="one set of stubs is enough")


def mypy(program: str, folder: Path) -> str:
    """Return what mypy says of a program, as a user calls it: away from the sources."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    return said_by(
        [*command, "--cache-dir", str(folder / "cache"), str(PROGRAMS / program)], folder
    )


def pyright(program: str, folder: Path) -> str:
    """Return what pyright says of a program."""
    found = shutil.which("basedpyright", path=f"{Path(sys.executable).parent}:{os.defpath}")
    if found is None:
        pytest.skip("basedpyright is not installed")
    command = [found, "--pythonpath", sys.executable, "--level", "error"]
    return said_by([*command, str(PROGRAMS / program)], folder)


def said_by(command: list[str], folder: Path) -> str:
    """Run a checker in `folder`, where it finds the package by its name; return its output."""
    parent = str(Path(bridge.__file__).parents[1])
    environment = {**os.environ, "MYPYPATH": parent, "PYTHONPATH": parent}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=500
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def lines_with_errors(said: str) -> set[int]:
    """Return the lines of the program with an error of which the output of a checker tells."""
    return {int(line) for line in re.findall(r"wrong\.py:(\d+)(?::\d+)?:? -? ?error", said)}


@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_users_program_has_no_type_errors(check: object, tmp_path: Path) -> None:
    assert callable(check)
    said = check("right.py", tmp_path)
    assert "error:" not in said.replace("0 errors", ""), said


@pytest.mark.parametrize("check", [mypy, pyright])
def test_each_mistake_in_a_users_program_is_a_type_error(check: object, tmp_path: Path) -> None:
    assert callable(check)
    lines = (PROGRAMS / "wrong.py").read_text().splitlines()
    expected = {i for i, line in enumerate(lines, 1) if line.endswith("# wrong")}
    said = check("wrong.py", tmp_path)
    assert lines_with_errors(said) == expected, said


def test_stubs_of_torchs_functions_are_those_that_the_tool_writes() -> None:
    command = [sys.executable, str(ROOT / "tools" / "make_torch_stubs.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
