# SPDX-License-Identifier: Apache-2.0
"""Which operators of a net run as one task, and whether several threads pay for them.

An operator waits for the last one that wrote a blob which it reads or writes, and for all that read
a blob which it writes. So each reads what it would read in the order of the net. A blob that is a
control input counts as read. Operators with nets as arguments wait for all before them, and all
after wait for them, since they may use any blob. Operators that draw random numbers keep their
order, so that they draw the same numbers. Operators of which each is the only successor of the one
before are one chain.

Note "When threads pay"
A thread that takes a task costs some microseconds, and so does each operator, whose thread takes
the interpreter's lock from another. So chains of little work are one task, unless one of them would
then wait for more of the operators that may wait themselves. The operators run in order, in the
thread of the caller, unless the tasks are estimated to end in four fifths of that time. An operator
that may wait, as for a queue, or runs Python, always runs beside those that do not depend on it.

The time of an operator is estimated by its type and the sizes of its blobs: microseconds or
milliseconds, on a core that makes some 50 billion multiplications and additions a second. No clock
takes part, so the same net runs in the same way.

Follows caffe2/core/net_async_scheduling.cc and net_async_tracing, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import NamedTuple

from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.function_operator import FunctionOperator
from bridge.caffe2.execution.operator import Operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.blobs.blob import Blob


_BUILT_IN = "bridge.caffe2.operators."
# The packages of operators that may wait for another one, as for a queue, or read a file.
_WAITING = tuple(f"{_BUILT_IN}{name}." for name in ("control", "datasets", "distributed"))


def predecessors(definitions: Sequence[Definition]) -> list[set[int]]:
    """Return for each operator the positions of those that it waits for."""
    found: list[set[int]] = []
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    barrier, random = -1, -1
    for i, definition in enumerate(definitions):
        before: set[int] = set()
        if any("n" in values or "nets" in values for values in definition.arguments.values()):
            before = set(range(i))
            barrier = i
        elif barrier >= 0:
            before.add(barrier)
        cls = definition.cls
        if issubclass(cls, FunctionOperator) and "random" in cls._declaration.effects:
            before |= {random} - {-1}
            random = i
        read = (*definition.inputs, *definition.control_inputs)
        for name in (*read, *definition.outputs):
            before |= {writer[name]} if name in writer else set()
        for name in definition.outputs:
            before.update(readers.get(name, ()))
        for name in read:
            readers.setdefault(name, []).append(i)
        for name in definition.outputs:
            writer[name] = i
            readers[name] = []
        before.discard(i)
        found.append(before)
    return found


def chains_of(before: list[set[int]]) -> tuple[list[list[int]], list[set[int]]]:
    """Return chains of operators, and for each chain the chains that it waits for."""
    after: list[set[int]] = [set() for _ in before]
    for i, wanted in enumerate(before):
        for j in wanted:
            after[j].add(i)
    chain_of: dict[int, int] = {}
    chains: list[list[int]] = []
    for i, wanted in enumerate(before):
        last = max(wanted, default=None)
        # The operators of a chain wait for the same others, besides the one before.
        if last is not None and chains[chain_of[last]][-1] == last and len(after[last]) == 1:
            chain = chain_of[last]
            if all(chain_of[j] == chain for j in wanted):
                chains[chain].append(i)
                chain_of[i] = chain
                continue
        chain_of[i] = len(chains)
        chains.append([i])
    waits: list[set[int]] = [set() for _ in chains]
    for i, wanted in enumerate(before):
        waits[chain_of[i]].update(chain_of[j] for j in wanted if chain_of[j] != chain_of[i])
    return chains, waits


def may_wait(definition: Definition) -> bool:
    """Return whether an operator may wait for another one, or takes a time that is not known.

    Those are queues, files, other processes, and all that are not built in, as Python's functions.
    """
    cls = definition.cls
    module = cls.__module__
    if not module.startswith(_BUILT_IN):
        return True
    return module.startswith(_WAITING) and not issubclass(cls, FunctionOperator)


def ancestors(before: list[set[int]]) -> list[int]:
    """Return for each operator those that it waits for, also indirectly: bit i for position i."""
    found: list[int] = []
    for wanted in before:
        bits = 0
        for j in wanted:
            bits |= found[j] | 1 << j
        found.append(bits)
    return found


_CALL = 1000.0
_ELEMENT = 0.06
_PRODUCT = 0.02
# Parts of the types of operators that multiply their first two inputs; and of those that use some
# rows of the first input.
_PRODUCTS = ("FC", "MatMul", "Conv")
_BY_ROWS = ("Gather", "Scatter", "Sparse")


def _numel_of(blob: Blob) -> int:
    """Return the number of elements of a blob; 0: it has no tensor."""
    tensor = blob._tensor
    return 0 if tensor is None or not tensor.defined() else tensor.numel()


def work_of(operator: Operator, definition: Definition) -> float:
    """Return the estimate for an operator on its blobs as they are; on a GPU, for the launch."""
    if definition.kind != "cpu":
        return _CALL
    op_type, inputs = definition.type, operator.Inputs()
    read = [_numel_of(blob) for blob in inputs]
    written = [_numel_of(blob) for blob in operator.Outputs()]
    elements = sum(read) + sum(written)
    if len(read) < 2 or not written:
        return _CALL + _ELEMENT * elements
    if any(part in op_type for part in _BY_ROWS):
        elements = sum(n for n in (*read, *written) if n != read[0])
        if "Lengths" in op_type:  # which sum the rows that input 1 has the indices of
            elements += read[1] * (read[0] // _rows_of(inputs[0]))
    products = 0.0
    if any(part in op_type for part in _PRODUCTS):
        # m × k elements and k × n give m × n.
        is_gradient = "Gradient" in op_type and len(read) > 2
        third = read[2] if is_gradient else written[0]
        products = sqrt(read[0]) * sqrt(read[1]) * sqrt(third) * (2 if is_gradient else 1)
        if op_type == "BatchMatMul":
            products /= sqrt(_rows_of(inputs[0]))
    return _CALL + _ELEMENT * elements + _PRODUCT * products


def _rows_of(blob: Blob) -> int:
    tensor = blob._tensor
    return max(tensor.size(0), 1) if tensor is not None and tensor.dim() else 1


# Nanoseconds more in threads: of a run, a task and an operator; and of the least work of a task.
_START, _TASK, _OPERATOR, _LEAST = 150_000.0, 15_000.0, 20_000.0, 60_000.0
_PAYS = 0.8
# The tasks are planned anew, by the sizes of the blobs, once in so many runs: for the 46 operators
# of DLRM that takes 170 microseconds, and a run 2,000. Who feeds larger batches from a run on has
# threads so many runs later, or 4 times as many if the net was so small that none could pay.
_RUNS = 128


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

    def renew(self) -> int:
        """Estimate anew, by the sizes of the blobs after a run; return for how many runs."""
        work = [
            work_of(operator, definition)
            for operator, definition in zip(self._operators, self._definitions, strict=True)
        ]
        if not self._threads_needed and sum(work) < _START / _PAYS:
            self.tasks = None
            return 4 * _RUNS
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
                return _RUNS
        self.tasks = Tasks(operators, waits, workers)
        return _RUNS

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
