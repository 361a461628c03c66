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

from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

from bridge.caffe2.execution.dependencies import ancestors, chains_of, may_wait, predecessors
from bridge.caffe2.execution.operator_work import numel_of, work_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.caffe2.blobs.blob import Blob
    from bridge.caffe2.execution.definition import Definition
    from bridge.caffe2.execution.operator import Operator

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
    at once. `tasks`: by the sizes of the blobs at the last `renew`; None: they run in order.
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
        self._sources: list[Blob] = []
        self._numels: list[int] = []
        self.tasks: Tasks | None = None
        if self.is_useful:
            self._note_waiting(before)
            self._sources = list(self._blobs_from_outside())

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

    def _blobs_from_outside(self) -> list[Blob]:
        """Return the blobs whose sizes decide about the others': those that the net is fed with."""
        known: dict[str, Blob | None] = {}
        for i, (operator, definition) in enumerate(
            zip(self._operators, self._definitions, strict=True)
        ):
            for name, blob in zip(definition.inputs, operator.Inputs(), strict=True):
                known.setdefault(name, blob)
            for name, blob in zip(definition.outputs, operator.Outputs(), strict=True):
                known.setdefault(name, blob if self._may_wait >> i & 1 else None)
        return [blob for blob in known.values() if blob is not None]

    @property
    def fits(self) -> bool:
        """Whether the net is fed with less than twice, and more than half, of the elements then."""
        return bool(self._numels) and all(
            before < 2 * now + 2 and now < 2 * before + 2
            for before, now in zip(self._numels, map(numel_of, self._sources), strict=True)
        )

    def renew(self) -> None:
        """Estimate anew, by the sizes that the blobs have after a run."""
        self._numels = list(map(numel_of, self._sources))
        work = [
            work_of(operator, definition)
            for operator, definition in zip(self._operators, self._definitions, strict=True)
        ]
        operators, waits = self._joined(work)
        workers = min(self.workers, len(operators))
        if not self._threads_needed:
            costs = [_TASK + sum(work[i] + _OPERATOR for i in task) for task in operators]
            end, workers = _simulated(costs, waits, workers)
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


def successors(waits: list[set[int]]) -> tuple[list[int], list[list[int]]]:
    """Return for each task the number of those that it waits for, and those that wait for it."""
    after: list[list[int]] = [[] for _ in waits]
    for task, wanted in enumerate(waits):
        for other in wanted:
            after[other].append(task)
    return [len(wanted) for wanted in waits], after


def _simulated(costs: list[float], waits: list[set[int]], workers: int) -> tuple[float, int]:
    """Return when the last task ends, and how many run at once at most."""
    missing, after = successors(waits)
    ready = deque(task for task, n in enumerate(missing) if not n)
    running: list[tuple[float, int]] = []
    now, most = 0.0, 0
    while ready or running:
        while ready and len(running) < workers:
            task = ready.popleft()
            heappush(running, (now + costs[task], task))
        most = max(most, len(running))
        now, task = heappop(running)
        for other in after[task]:
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    return now, most
