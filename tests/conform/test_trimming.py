# SPDX-License-Identifier: Apache-2.0
"""Programs are shortened to what ran, and still show what they showed."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bridge.conform import check
from bridge.conform.cases import CASES
from bridge.conform.programs import program_of
from bridge.conform.trimming import FILE, traced, trimmed
from tests.conform.subjects import Subject, faults

PROGRAM = """\
# Why.
import gc
import sys
import weakref

def show():
    box = Box([1])
    try:
        box.fill()
    except ValueError:
        skip('no room')
    if box.values:
        checked(box)
    else:
        broken('empty')
    if not box.values:
        broken('still empty')
    broken(f'{len(box.values)} values')

# What it needs of DLPack, by ctypes:
broken = sys.exit
skip = lambda reason: sys.exit(0)
LIMIT = 3
class Box:
    def __init__(self, values):
        self.values = values
        self.owner = values
        self.count = len(values)
        self.callback = self.release
    def fill(self):
        if len(self.values) > LIMIT:
            raise ValueError
        self.values.append(2)
    def release(self):
        gc.collect()
    def name(self):
        return 'box'
def checked(box):
    if box.values is None:
        broken('nothing')
show()
"""
SHORTER = """\
# Why.
import gc, sys
skip = lambda reason: sys.exit(0)
class Box:
    def __init__(self, values):
        self.values = values
        self.owner = values
        self.callback = self.release
    def fill(self):
        self.values.append(2)
    def release(self):
        gc.collect()
box = Box([1])
try:
    box.fill()
except ValueError:
    skip('no room')
sys.exit(f'{len(box.values)} values')
"""


def lines_of(program: str) -> bytearray:
    ran = bytearray(program.count("\n") + 2)
    names: dict[str, Any] = {"__name__": "__main__"}
    with pytest.raises(SystemExit, match="2 values"):
        traced(lambda: exec(compile(program, FILE, "exec"), names), ran)
    return ran


def test_what_did_not_run_is_gone_and_what_may_run_stays() -> None:
    before = sys.gettrace()
    shorter = trimmed(PROGRAM, lines_of(PROGRAM))
    assert shorter == SHORTER
    lines_of(shorter)
    assert sys.gettrace() is before


@pytest.mark.parametrize(
    ("fault", "rule"),
    [("deleter-never", "producer-deleter-frees"), ("strides-ignored", "consumer-strides")],
)
def test_a_shorter_program_shows_the_same(fault: str, rule: str) -> None:
    with faults(fault):
        (result,) = check(Subject(), [rule]).broken
    setup = "".join(f"{name} = subject.{name}\n" for name in ("make", "from_dlpack", "to_numpy"))
    whole = program_of(result.rule, CASES[rule], setup)
    assert result.program is not None
    assert len(result.program.splitlines()) < 0.5 * len(whole.splitlines())
    with faults(fault), pytest.raises(SystemExit) as shown:
        exec(result.program, {"__name__": "__main__", "subject": Subject()})
    assert str(shown.value) == result.seen
    exec(result.program, {"__name__": "__main__", "subject": Subject()})


def test_a_deleter_that_is_never_called_stays_in_the_program() -> None:
    with faults("delete-never"):
        (result,) = check(Subject(), ["consumer-deleter-called"]).broken
    assert result.program is not None
    assert "self.deleted.append(" in result.program
    exec(result.program, {"__name__": "__main__", "subject": Subject()})
