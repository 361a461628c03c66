# SPDX-License-Identifier: Apache-2.0
"""Each door takes or refuses what is kept of its inputs, and mutations of it, always the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.check import Checker
from tests.fuzz.corpus import MOST, MOST_BYTES, kept
from tests.fuzz.doors import DOORS, enter
from tests.golden.blob_messages import mutated
from tests.helpers.isolate import isolated

# How many times as many mutations: `.ci/run` asks for about a minute of each door.
TIMES = int(os.environ.get("FUZZ_TIMES", "1"))
# As many as take about fifteen seconds with what is kept, or as are enough where that would be a
# million.
MUTATIONS = {
    "capsule": 60_000,
    "table": 60_000,
    "exchange_table": 100_000,
    "array_interface": 90_000,
    "array_struct": 100_000,
    "cuda_interface": 15_000,
    "producer": 40_000,
    "buffer": 200_000,
    "arrow_array": 30_000,
    "tensor_proto": 100_000,
    "net": 10_000,
    "operators": 800,
    "minidb": 12_000,
    "predictor": 5_000,
    "chunks": 60_000,
    "convert": 2_000,
    "pickled": 200_000,
    "shell": 3_500,
    "blob": 60_000,
}
# Those whose bytes are numbers.
BY_CHANCE = (
    *("capsule", "table", "exchange_table", "array_interface", "array_struct", "cuda_interface"),
    *("producer", "buffer", "arrow_array", "operators", "pickled"),
)


def inputs(name: str, first: list[bytes]) -> Iterator[bytes]:
    """Yield what is kept for a door, and mutations; some by chance, where bytes are numbers."""
    yield from first
    rng = random.Random(name)
    for index in range(TIMES * MUTATIONS[name]):
        yield rng.randbytes(64) if name in BY_CHANCE and index % 3 == 0 else mutated(rng, first)


@isolated
@pytest.mark.parametrize("name", DOORS)
def test_a_door_takes_or_refuses(name: str) -> None:
    taken = count = 0
    for data in inputs(name, DOORS[name][1]() + kept(name)):
        count += 1
        try:
            taken += enter(name, data)
        except BaseException as error:
            raise AssertionError(f"{name} of {data!r}") from error
    assert 0 < taken < count or name == "shell"


@isolated
def test_the_reader_of_blobs_reads_or_refuses_each_kept_input() -> None:
    checker = Checker()
    for data in inputs("blob", kept("blob")):
        try:
            checker.check(data)
        except BaseException as error:
            raise AssertionError(repr(data)) from error
    assert checker.read
    assert checker.refused


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_kept_inputs_are_few_and_small(name: str) -> None:
    found = kept(name)
    assert 0 < len(found) <= MOST
    assert sum(map(len, found)) <= MOST_BYTES
    assert len(set(found)) == len(found)


# Doors of which one crashes at longer inputs, and one waits for ever.
_FAULTS = """
import os, signal, sys
from tests.fuzz import doors, fuzz_door

def crashes(data):
    if len(data) > 40:
        os.kill(os.getpid(), signal.SIGKILL)  # which a sanitizer does not catch

doors.DOORS["crashes"] = (crashes, lambda: [b"abc"])
doors.DOORS["hangs"] = (lambda data: signal.sigwait([signal.SIGUSR1]), lambda: [b"abc"])
doors.DOORS["stands"] = (lambda data: None, lambda: [b"abc"])
if sys.argv[1] == "hangs":
    fuzz_door.TIME_LIMIT_S = 1
fuzz_door.main()
"""


def _fuzz(*words: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.append({root!r}){_FAULTS}"
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )


def test_a_crash_leaves_its_input() -> None:
    found = _fuzz("crashes", "--by-chance", "60", "--seed", "1")
    assert found.returncode == -signal.SIGKILL, found.stderr
    path = Path(found.stdout.split()[-1])
    data = path.read_bytes()
    try:
        assert len(data) > 40
        assert _fuzz("crashes", "--again", str(path)).returncode == -signal.SIGKILL
        again = _fuzz("stands", "--again", str(path))
        assert again.returncode == 0, again.stderr
        assert again.stdout == "taken\n"
    finally:
        path.unlink()


def test_an_input_that_takes_too_long_is_left() -> None:
    found = _fuzz("hangs", "--by-chance", "60")
    assert found.returncode == -signal.SIGALRM, found.stderr
    assert "File" in found.stderr  # where it was
    Path(found.stdout.split()[-1]).unlink()


def test_a_run_without_findings_leaves_no_file() -> None:
    found = _fuzz("stands", "--by-chance", "0.1")
    assert found.returncode == 0, found.stderr
    assert not Path(found.stdout.splitlines()[0].split()[-1]).exists()
    assert "inputs" in found.stdout
