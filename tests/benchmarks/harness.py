# SPDX-License-Identifier: Apache-2.0
"""Measure two things by turns, and say what one is over the other.

Times on a shared machine drift by tens of percent within a run; the ratio of two neighbouring
measurements hardly does. So each round measures both sides, in alternating order, and the figure
is the median over the rounds of the round's own ratio. A round takes the best of a few short
samples of each side, since whatever else runs on the machine can only add to one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

from tests.benchmarks.loop import REPEATS, compile_loop

# Seconds for one run, measured over at least that many runs.
Timer = Callable[[int], float]


@dataclass(frozen=True)
class Effort:
    """How much work a run of the benchmarks puts in."""

    rounds: int = 31
    samples: int = 5  # of each side in a round
    seconds: float = 0.001  # that one sample takes, at least
    blobs: int = 1_000_000
    huge: int = 1 << 30  # bytes
    cycles: int = 1_000_000
    held: int = 200_000
    compiles: bool = True  # nets, which takes a minute for a large one
    only: str = ""  # a regular expression; other nets are left out


# Enough to see that every benchmark still runs; its figures mean nothing.
SMOKE = Effort(
    rounds=1, samples=1, seconds=0.0, blobs=100, huge=1 << 20, cycles=100, held=100, compiles=False
)


@dataclass(frozen=True)
class Outcome:
    """What was measured: the ratio (or the bare figure, where nothing is compared), both sides."""

    figure: float
    ours: str
    peers: str


@dataclass(frozen=True)
class Row:
    """One line of the table. `must` and `goal` are upper bounds of the outcome's figure, or inf."""

    what: str
    over: str
    must: float
    goal: float
    outcome: Outcome

    @property
    def verdict(self) -> str:
        """Say which bound the figure keeps: `goal`, `must`, or `MISSED`; nothing without bounds."""
        if self.must == math.inf:
            return ""
        if self.outcome.figure <= self.goal:
            return "goal"
        return "must" if self.outcome.figure <= self.must else "MISSED"


class Case(NamedTuple):
    """What is to be a row: its cells as in `Row`, and the two sides to measure."""

    what: str
    over: str
    must: float
    goal: float
    ours: Timer
    peers: Timer


def measured(cases: Iterable[Case], effort: Effort) -> Iterator[Row]:
    """Measure each case as it comes."""
    for what, over, must, goal, ours, peers in cases:
        yield Row(what, over, must, goal, compare(ours, peers, effort))


def loop(
    statement: str, before: Callable[[], Any] | None = None, repeats: int = REPEATS, **names: Any
) -> Timer:
    """Time a statement over the given names; `before` runs ahead of each measurement, untimed."""
    timed = compile_loop(statement, names, repeats)
    if before is None:
        return timed

    def timer(number: int) -> float:
        before()
        return timed(number)

    return timer


def runs_needed(timer: Timer, seconds: float) -> int:
    """Find how many runs take `seconds`. The runs made meanwhile warm up what is measured."""
    number = 1
    while number < 10_000_000:
        taken = timer(number) * number
        if taken >= seconds:
            break
        number *= 2 if taken > seconds / 8 else 8
    return number


def compare(ours: Timer, peers: Timer, effort: Effort) -> Outcome:
    """Measure both sides in interleaved rounds; ours over theirs."""
    sides = [(timer, runs_needed(timer, effort.seconds), []) for timer in (ours, peers)]
    for turn in range(effort.rounds):
        for timer, number, times in sides if turn % 2 else reversed(sides):
            times.append(min(timer(number) for _ in range(effort.samples)))
    our_times, peer_times = (times for _, _, times in sides)
    ratio = median(a / b for a, b in zip(our_times, peer_times, strict=True))
    return Outcome(ratio, in_words(median(our_times)), in_words(median(peer_times)))


def in_words(seconds: float) -> str:
    """Write a time with its unit."""
    if seconds < 1e-5:
        return f"{seconds * 1e9:,.0f} ns"
    return f"{seconds * 1e6:,.0f} µs" if seconds < 1e-2 else f"{seconds * 1e3:,.0f} ms"


def bound(value: float) -> str:
    """Write a bound, if there is one."""
    return "" if value == math.inf else f"{value:g}"


def table(rows: Iterable[Row]) -> str:
    """Set the rows as a Markdown table."""
    lines = [
        "| what | over | bridge | peer | figure | must | goal | keeps |",
        "|---|---|--:|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        out = row.outcome
        lines.append(
            f"| {row.what} | {row.over} | {out.ours} | {out.peers} "
            f"| {out.figure:.3g} | {bound(row.must)} | {bound(row.goal)} | {row.verdict} |"
        )
    return "\n".join(lines)
