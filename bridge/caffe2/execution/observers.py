# SPDX-License-Identifier: Apache-2.0
"""Observers of a net: they time and count its runs, and the runs of its operators.

Follows caffe2/core/observer.h and caffe2/observers/, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
import threading
import time

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.operator_core import run_one
from bridge.caffe2.execution.parallel import ParallelRun, run_in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from bridge.caffe2.execution.operator import Operator

    class NetRun(Protocol):
        """A way to run the operators of a net."""

        def run(self, position: list[int], /) -> None:
            """Run the operators; if one fails, set ``position[0]`` to its index."""


class Observer:
    """The base class of observers of a net; ``core.Net.AddObserver`` makes them."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._count = len(operators)

    def average_time(self) -> float:
        """Return the mean time of a run of the net in milliseconds; NaN if there was none.

        Raises EnforceNotMet: the observer takes no times.
        """
        raise self._refusal("average_time")

    def average_time_children(self) -> float:
        """Return the mean, over the operators, of the mean time of a run in milliseconds.

        Raises EnforceNotMet: the observer takes no times.
        """
        raise self._refusal("average_time_children")

    def debug_info(self) -> str:
        """Return the counts of the observer as text."""
        return "Not implemented."

    def _refusal(self, name: str) -> EnforceNotMet:
        kind = type(self).__name__
        return EnforceNotMet(
            f"A {kind} does not implement this function; a TimeObserver does.",
            f"Observer.{name}",
            condition="cast_ob",
        )

    def _net_ran(self, seconds: float) -> None:
        """Note that a run of the net has ended."""

    def _operator_ran(self, position: int, operator: Operator, seconds: float) -> None:
        """Note that an operator has ended, or failed; several threads may call it."""


class TimeObserver(Observer):
    """Takes the times of the net and of its operators."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        super().__init__(operators)
        self._runs, self._seconds = 0, 0.0
        self._operator_runs = [0] * self._count
        self._operator_seconds = [0.0] * self._count
        self._lock = threading.Lock()

    def average_time(self) -> float:
        """Return the milliseconds of a run, on average."""
        return 1000 * _mean(self._seconds, self._runs)

    def average_time_children(self) -> float:
        """Return the milliseconds of an operator, on average."""
        means = map(_mean, self._operator_seconds, self._operator_runs)
        return 1000 * _mean(sum(means), self._count)

    def _net_ran(self, seconds: float) -> None:
        with self._lock:
            self._runs += 1
            self._seconds += seconds

    def _operator_ran(self, position: int, operator: Operator, seconds: float) -> None:
        with self._lock:
            self._operator_runs[position] += 1
            self._operator_seconds[position] += seconds


class RunCountObserver(Observer):
    """Counts the runs of operators, also of those in the steps of recurrent networks."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        super().__init__(operators)
        self._runs = 0
        self._inner = [operator._inner_runs for operator in operators]
        self._lock = threading.Lock()

    def debug_info(self) -> str:
        """Return a sentence with the number of runs."""
        return f"This operator runs {self._runs} times."

    def _operator_ran(self, position: int, operator: Operator, seconds: float) -> None:
        with self._lock:
            self._runs += 1 + operator._inner_runs - self._inner[position]
            self._inner[position] = operator._inner_runs


class ProfileObserver(Observer):
    """Logs the operators, their tensors and times, at level INFO, to the logger of this module."""

    def _operator_ran(self, position: int, operator: Operator, seconds: float) -> None:
        import logging

        log = logging.getLogger(__name__)
        definition = operator._definition
        log.info("--------- Starting operator %s op#%d ---------", definition.type, position)
        for what, names, blobs in (
            ("Input", definition.inputs, operator.Inputs()),
            ("Output", definition.outputs, operator.Outputs()),
        ):
            for i, (name, blob) in enumerate(zip(names, blobs, strict=True)):
                log.info("%s %d: %s", what, i, blob._describe(name))
        milliseconds = 1000 * seconds
        log.info("--------- Finished operator %s in %g ms ---------", definition.type, milliseconds)


# By the names that `core.Net.AddObserver` takes.
KINDS = {kind.__name__: kind for kind in (TimeObserver, RunCountObserver, ProfileObserver)}


def _mean(total: float, count: int) -> float:
    return total / count if count else math.nan


class ObservedRun:
    """Runs the operators of a net one by one, with observers.

    unobserved: how the net runs them without observers; None: in order. A ParallelRun runs them in
    several threads here, too.
    """

    def __init__(self, operators: Sequence[Operator], unobserved: NetRun | None) -> None:
        self.observers: list[Observer] = []
        self.unobserved = unobserved
        self._operators = operators

    def run(self, position: list[int]) -> None:
        """Run the operators; if one fails, set ``position[0]`` to its index."""
        observers = list(self.observers)

        def run_at(i: int) -> None:
            began = time.perf_counter()
            try:
                run_one(self._operators[i])
            finally:
                seconds = time.perf_counter() - began
                for one in observers:
                    one._operator_ran(i, self._operators[i], seconds)

        began, seconds = time.perf_counter(), 0.0  # Caffe2 takes no time of a run that fails
        try:
            if isinstance(self.unobserved, ParallelRun):
                self.unobserved.run(position, run_at)
            else:
                run_in_order(len(self._operators), position, run_at)
            seconds = time.perf_counter() - began
        finally:
            for one in observers:
                one._net_ran(seconds)
