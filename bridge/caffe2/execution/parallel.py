# SPDX-License-Identifier: Apache-2.0
"""Running operators of a net in several threads, those that do not depend on each other at once.

On a GPU all work on the streams that are current for the caller. See `dependencies` for what waits
for what, and `task_plan` for what runs as one task.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from bridge.caffe2.execution.operator_core import run_all, run_one
from bridge.caffe2.execution.task_plan import TaskPlan, successors
from bridge.caffe2.execution.torch_state import is_neutral_here, neutral
from bridge.exchange.streams import on_current_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from typing import Any

    from bridge.caffe2.execution.definition import Definition
    from bridge.caffe2.execution.operator import Operator
    from bridge.caffe2.execution.task_plan import Tasks

# A net whose operators run in order has its blobs' sizes looked at once in as many runs.
_RUNS_IN_ORDER = 128


class ParallelRun:
    """The operators of a net, to be run by up to `workers` threads where that pays.

    workers: the number of operators that may run at once; None: as many as there are processors.
    `is_useful`: whether any two operators can run at once. `runs_in_order`: the number of runs that
    whoever runs the net may make in order, without this, until the sizes are looked at again.
    """

    def __init__(
        self, operators: list[Operator], definitions: list[Definition], workers: int | None
    ) -> None:
        self._operators = operators
        self._plan = TaskPlan(operators, definitions, workers or os.cpu_count() or 1)
        self.is_useful = self._plan.is_useful
        self._pool: ThreadPoolExecutor | None = None
        self._has_run = False
        self.runs_in_order = 0

    def run(self, run_at: Callable[[int], None] | None = None) -> None:
        """Run the operators. If one fails, wait for those at work, and raise an `OperatorFailed`.

        Operators that have not begun then do not run. run_at: what runs the operator at a position,
        in the place of `run_one`.
        """
        tasks = self._renewed_tasks()
        if tasks is None:
            self._run_in_order(run_at)
            return
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # loads logging

            self._pool = ThreadPoolExecutor(self._plan.workers - 1, "caffe2-net")
        run = _Run(self._operators, tasks, run_at)
        work = on_current_streams(run.work)
        helpers = [self._pool.submit(work) for _ in range(tasks.workers - 1)]
        with nullcontext() if is_neutral_here() else neutral():
            run.work()
        for helper in helpers:
            helper.result()
        if run.failure is not None:
            position, cause = run.failure
            raise OperatorFailed(position) from cause

    def _renewed_tasks(self) -> Tasks | None:
        """Return the tasks for the sizes of the blobs; None: the operators run in order.

        The sizes are not known before the first run. Where the operators run in order, they are not
        looked at in each run, since that takes as long as a small operator.
        """
        plan = self._plan
        if not self._has_run:
            self._has_run = True
            return plan.tasks
        if not plan.fits:
            plan.renew()
        if plan.tasks is None:
            self.runs_in_order = _RUNS_IN_ORDER
        return plan.tasks

    def _run_in_order(self, run_at: Callable[[int], None] | None) -> None:
        at = [0]
        try:
            if run_at is None:
                run_all(self._operators, at)
                return
            with nullcontext() if is_neutral_here() else neutral():
                for at[0] in range(len(self._operators)):
                    run_at(at[0])
        except BaseException as cause:
            raise OperatorFailed(at[0]) from cause


class OperatorFailed(Exception):
    """The operator at `position` failed, for the reason in ``__cause__``."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class _Run:
    """One run: the tasks that are ready, and those that wait."""

    def __init__(
        self,
        operators: list[Operator],
        tasks: Tasks,
        run_at: Callable[[int], None] | None,
    ) -> None:
        self.operators = operators
        self.run_at = run_at
        self.tasks = tasks.operators
        self.missing, self.after = successors(tasks.waits)
        self.ready = deque(task for task, n in enumerate(self.missing) if not n)
        self.left = len(self.tasks)
        self.condition = threading.Condition()
        self.failure: tuple[int, BaseException] | None = None

    def work(self) -> None:
        """Run tasks until none is left, or an operator failed."""
        while True:
            with self.condition:
                while not self.ready and self.left and self.failure is None:
                    self.condition.wait()
                if self.failure is not None or not self.ready:
                    return
                task = self.ready.popleft()
            self._run_task(task)

    def _run_task(self, task: int) -> None:
        for position in self.tasks[task]:
            if self.failure is not None:
                return
            try:
                if self.run_at is None:
                    run_one(self.operators[position])
                else:
                    self.run_at(position)
            except BaseException as cause:  # noqa: BLE001  # raised by `run`
                self._fail(position, cause)
                return
        with self.condition:
            self.left -= 1
            for other in self.after[task]:
                self.missing[other] -= 1
                if not self.missing[other]:
                    self.ready.append(other)
            self.condition.notify_all()

    def _fail(self, position: int, cause: BaseException) -> None:
        """Remember the failure of the first operator in the order of the net."""
        with self.condition:
            if self.failure is None or position < self.failure[0]:
                self.failure = position, cause
            self.condition.notify_all()


def run_tasks(tasks: Sequence[Any], workers: int, cancel: Callable[[], None]) -> None:
    """Call functions without arguments in `workers` threads, each one once, begun in their order.

    If one raises an error, those that have not begun are left out, and `cancel` is called, to end
    those that wait; the first error is raised when all threads have ended.
    """
    waiting = deque(tasks)
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:  # noqa: BLE001  # raised below
                errors.append(error)
                cancel()

    target = on_current_streams(work)
    threads = [threading.Thread(target=target) for _ in range(min(workers, len(tasks)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
