# SPDX-License-Identifier: Apache-2.0
"""Running operators of a net in several threads, those that do not depend on each other at once.

On a GPU all work on the streams that are current for the caller. `task_plan` says which operators
run as one task, and which tasks wait for which others.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence

from bridge.caffe2.execution.operator_core import run_all, run_one
from bridge.caffe2.execution.task_plan import TaskPlan
from bridge.exchange.streams import on_current_streams
from bridge.exchange.torch_settings import neutral

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from bridge.caffe2.execution.definition import Definition
    from bridge.caffe2.execution.operator import Operator
    from bridge.caffe2.execution.task_plan import Tasks


class ParallelRun:
    """The operators of a net, to be run by up to `workers` threads where that pays.

    workers: the number of operators that may run at once; None: as many as there are processors.
    `is_useful`: whether any two operators can run at once.
    """

    def __init__(
        self, operators: list[Operator], definitions: list[Definition], workers: int | None
    ) -> None:
        self._operators = operators
        self._plan = TaskPlan(operators, definitions, workers or os.cpu_count() or 1)
        self.is_useful = self._plan.is_useful
        self._pool: ThreadPoolExecutor | None = None
        self._runs_left = 1  # sizes are not known before the first run

    def run(self, position: list[int], run_at: Callable[[int], None] | None = None) -> None:
        """Run the operators; if one fails, set ``position[0]`` to its index.

        Operators that have not begun then do not run; those at work are waited for. run_at: runs
        the operator at an index, in the place of `run_one`.
        """
        if not self._runs_left:
            self._runs_left = self._plan.renew()
        self._runs_left -= 1
        tasks = self._plan.tasks
        if tasks is not None:
            self._run_tasks(tasks, position, run_at or (lambda i: run_one(self._operators[i])))
        elif run_at is None:
            run_all(self._operators, position)
        else:
            run_in_order(len(self._operators), position, run_at)

    def _run_tasks(
        self, tasks: Tasks, position: list[int], run_at: Callable[[int], object]
    ) -> None:
        if self._pool is None:
            self._pool = _threads(self._plan.workers - 1)
        at = [0] * len(tasks.operators)

        def run_task(task: int) -> None:
            for i in tasks.operators[task]:
                if run.error is None:
                    at[task] = i
                    run_at(i)

        run = _Run(run_task, tasks.waits)
        try:
            run.by_threads(self._pool, tasks.workers - 1)
        finally:
            position[0] = at[run.failed]


def run_in_order(count: int, position: list[int], run_at: Callable[[int], None]) -> None:
    """Call `run_at` for `count` operators; if one fails, set ``position[0]`` to its index."""
    with neutral():
        for i in range(count):
            position[0] = i
            run_at(i)


def run_tasks(tasks: Sequence[Callable[[], None]], cancel: Callable[[], None]) -> None:
    """Call functions, each in a thread.

    If one raises an error, those that have not begun are left out, and `cancel` is called, to end
    those that wait; the first error is raised when all threads have ended.
    """
    run = _Run(lambda i: tasks[i](), [set() for _ in tasks], cancel)
    with _threads(len(tasks)) as pool:
        run.by_threads(pool, len(tasks) - 1)


def _threads(count: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # loads logging

    return ThreadPoolExecutor(count, "caffe2-net")


class _Run:
    """One run of tasks 0, 1, …; waits: those that each waits for; cancel: called if one fails."""

    def __init__(
        self,
        run_task: Callable[[int], None],
        waits: list[set[int]],
        cancel: Callable[[], None] | None = None,
    ) -> None:
        self.run_task = run_task
        self.cancel = cancel
        self.missing = [len(wanted) for wanted in waits]
        self.after: list[list[int]] = [[] for _ in waits]
        for task, wanted in enumerate(waits):
            for other in wanted:
                self.after[other].append(task)
        self.ready = deque(task for task, n in enumerate(self.missing) if not n)
        self.left = len(waits)
        self.condition = threading.Condition()
        self.failed = 0
        self.error: BaseException | None = None

    def by_threads(self, pool: ThreadPoolExecutor, count: int) -> None:
        """Run the tasks in this thread and `count` others; raise the error of the first that fails.

        Its number is `failed`.
        """
        work = on_current_streams(self.work)
        others = [pool.submit(work) for _ in range(count)]
        with neutral():
            self.work()
        for other in others:
            other.result()
        if self.error is not None:
            raise self.error

    def work(self) -> None:
        """Run tasks until none is left, or one failed."""
        while True:
            with self.condition:
                while not self.ready and self.left and self.error is None:
                    self.condition.wait()
                if self.error is not None or not self.ready:
                    return
                task = self.ready.popleft()
            try:
                self.run_task(task)
            except BaseException as error:  # noqa: BLE001  # raised by `by_threads`
                self._end(task, error)
                if self.cancel is not None:
                    self.cancel()
                return
            self._end(task, None)

    def _end(self, task: int, error: BaseException | None) -> None:
        """Note that a task has ended; those that waited for it alone are ready now."""
        with self.condition:
            self.left -= 1
            if error is not None and self.error is None:
                self.failed, self.error = task, error
            for other in self.after[task]:
                self.missing[other] -= 1
                if not self.missing[other]:
                    self.ready.append(other)
            self.condition.notify_all()
