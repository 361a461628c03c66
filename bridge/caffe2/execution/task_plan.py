# SPDX-License-Identifier: Apache-2.0
"""Which operators of a net run as one task, and whether several threads pay for them.

Note "When threads pay"
A thread that takes a task costs some microseconds, and so does each operator, whose thread takes
the interpreter's lock from another. So chains of little work are one task, unless one of them would
then wait for more of the operators that may wait themselves. The operators run in order, in the
thread of the caller, unless the tasks are estimated to end in four fifths of that time. An operator
that may wait, as for a queue, or runs Python, always runs beside those that do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.dependencies import ancestors, chains_of, may_wait, predecessors
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.operator_work import work_of

# Nanoseconds more in threads: of a run, a task and an operator; and of the least work of a task.
_START, _TASK, _OPERATOR, _LEAST = 150_000.0, 15_000.0, 20_000.0, 60_000.0
_PAYS = 0.8


class Tasks(NamedTuple):
    """Operators by task, the tasks that each waits for, and the number of threads.

    operators: their positions in the net, in order.
    """

    operators: list[list[int]]
    waits: list[set[int]]
    workers: int


class TaskPlan:
    """The tasks of a net for up to `workers` threads; see the Note.

    `workers`: no more of them than there are chains. `is_useful`: whether any two operators can run
    at once. `tasks`: by the blobs' sizes at the last `renew`; None: the operators run in order.
    """

    def __init__(
        self, operators: Sequence[Operator], definitions: Sequence[Definition], workers: int
    ) -> None:
        self._operators = operators
        self._definitions = definitions
        before = predecessors(definitions)
        self._chains, self._waits = chains_of(before)
        self.workers = min(workers, len(self._chains))
        self.is_useful = self.workers > 1 and any(
            len(wanted) < i for i, wanted in enumerate(self._waits)
        )
        self.tasks: Tasks | None = None
        if self.is_useful:
            self._note_waiting(before)

    def _note_waiting(self, before: list[set[int]]) -> None:
        """Note which operators may wait, and whether others can run meanwhile."""
        n = len(before)
        waiting = [i for i, definition in enumerate(self._definitions) if may_wait(definition)]
        reached = ancestors(before)
        mask = sum(1 << i for i in waiting)
        # Those that may wait themselves, and those that an operator waits for.
        self._may_wait = mask
        self._after_waiting = [bits & mask for bits in reached]
        self._threads_needed = any(
            i != j and not reached[i] >> j & 1 and not reached[j] >> i & 1
            for i in waiting
            for j in range(n)
        )
        if self._threads_needed:
            self.tasks = Tasks(self._chains, self._waits, self.workers)

    def renew(self) -> None:
        """Estimate anew, by the sizes that the blobs have after a run."""
        work = [
            work_of(operator, definition)
            for operator, definition in zip(self._operators, self._definitions, strict=True)
        ]
        operators, waits = self._joined(work)
        workers = min(self.workers, len(operators))
        if not self._threads_needed:
            costs = [_TASK + sum(work[i] + _OPERATOR for i in task) for task in operators]
            ends: list[float] = []  # a task waits for earlier ones only
            for cost, wanted in zip(costs, waits, strict=True):
                ends.append(cost + max((ends[other] for other in wanted), default=0.0))
            workers = min(workers, ceil(sum(costs) / max(ends)))
            end = max(*ends, sum(costs) / workers)
            if workers < 2 or _START + end > _PAYS * sum(work):
                self.tasks = None
                return
        self.tasks = Tasks(operators, waits, workers)

    def _joined(self, work: list[float]) -> tuple[list[list[int]], list[set[int]]]:
        """Return tasks of successive chains of little work; and the tasks that each waits for."""
        tasks: list[list[int]] = []
        task_of: list[int] = []
        is_open, before, done = False, 0, 0.0
        for chain in self._chains:
            alone = any(self._may_wait >> i & 1 for i in chain)
            if not is_open or alone or self._after_waiting[chain[0]] != before:
                tasks.append([])
                done = 0.0
            tasks[-1] += chain
            task_of.append(len(tasks) - 1)
            done += sum(work[i] for i in chain)
            before = self._after_waiting[chain[0]]
            is_open = done < _LEAST and not alone
        waits: list[set[int]] = [set() for _ in tasks]
        for task, wanted in zip(task_of, self._waits, strict=True):
            waits[task].update(task_of[chain] for chain in wanted)
            waits[task].discard(task)
        return [sorted(task) for task in tasks], waits
