# SPDX-License-Identifier: Apache-2.0
"""Running operators of a net in several threads, those that do not depend on each other at once.

An operator waits for the last one that wrote a blob which it reads or writes, and for all that read
a blob which it writes. So each reads what it would read in the order of the net. A blob that is a
control input counts as read. Operators with nets as arguments wait for all before them, and all
after wait for them, since they may use any blob. Operators that draw random numbers keep their
order, so that they draw the same numbers. On a GPU all work on the streams that are current for the
caller.

Operators of which each is the only successor of the one before are run as one chain.
Follows caffe2/core/net_async_scheduling.cc and net_async_tracing, PyTorch 1.8.1, in what runs when.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from bridge.caffe2.execution.function_operator import FunctionOperator
from bridge.caffe2.execution.operator_core import run_one
from bridge.caffe2.execution.torch_state import is_neutral_here, neutral
from bridge.exchange.streams import on_current_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from typing import Any

    from bridge.caffe2.execution.definition import Definition
    from bridge.caffe2.execution.operator import Operator


def _predecessors(definitions: Sequence[Definition]) -> list[set[int]]:
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
        if _is_random(definition):
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


def _is_random(definition: Definition) -> bool:
    cls = definition.cls
    return issubclass(cls, FunctionOperator) and "random" in cls._declaration.effects


def _chains(before: list[set[int]]) -> tuple[list[list[int]], list[set[int]]]:
    """Return chains of operators, and for each chain the chains that it waits for."""
    after: list[set[int]] = [set() for _ in before]
    for i, wanted in enumerate(before):
        for j in wanted:
            after[j].add(i)
    chain_of: dict[int, int] = {}
    chains: list[list[int]] = []
    for i, wanted in enumerate(before):
        last = max(wanted, default=None)
        # Waiting for what an operator of the chain waits for anyway adds nothing.
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


class ParallelRun:
    """The operators of a net, to be run by up to `workers` threads.

    workers: the number of operators that may run at once; None: as many as there are processors.
    `is_useful`: whether any two operators can run at once.
    """

    def __init__(
        self, operators: list[Operator], definitions: list[Definition], workers: int | None
    ) -> None:
        self._operators = operators
        self._chains, self._waits = _chains(_predecessors(definitions))
        self._workers = min(workers or os.cpu_count() or 1, len(self._chains))
        self.is_useful = self._workers > 1 and any(
            len(wanted) < i for i, wanted in enumerate(self._waits)
        )
        self._pool: ThreadPoolExecutor | None = None

    def run(self, run_at: Callable[[int], None] | None = None) -> None:
        """Run the operators. If one fails, wait for those at work, and raise an `OperatorFailed`.

        Operators that have not begun then do not run. run_at: what runs the operator at a position,
        in the place of `run_one`.
        """
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # loads logging

            self._pool = ThreadPoolExecutor(self._workers - 1, "caffe2-net")
        run = _Run(self._operators, self._chains, self._waits, run_at)
        work = on_current_streams(run.work)
        helpers = [self._pool.submit(work) for _ in range(self._workers - 1)]
        with nullcontext() if is_neutral_here() else neutral():
            run.work()
        for helper in helpers:
            helper.result()
        if run.failure is not None:
            position, cause = run.failure
            raise OperatorFailed(position) from cause


class OperatorFailed(Exception):
    """The operator at `position` failed, for the reason in ``__cause__``."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class _Run:
    """One run: the chains that are ready, and those that wait."""

    def __init__(
        self,
        operators: list[Operator],
        chains: list[list[int]],
        waits: list[set[int]],
        run_at: Callable[[int], None] | None,
    ) -> None:
        self.operators = operators
        self.run_at = run_at
        self.chains = chains
        self.missing = [len(wanted) for wanted in waits]
        self.after: list[list[int]] = [[] for _ in chains]
        for chain, wanted in enumerate(waits):
            for other in wanted:
                self.after[other].append(chain)
        self.ready = deque(chain for chain, n in enumerate(self.missing) if not n)
        self.left = len(chains)
        self.condition = threading.Condition()
        self.failure: tuple[int, BaseException] | None = None

    def work(self) -> None:
        """Run chains until none is left, or an operator failed."""
        while True:
            with self.condition:
                while not self.ready and self.left and self.failure is None:
                    self.condition.wait()
                if self.failure is not None or not self.ready:
                    return
                chain = self.ready.popleft()
            self._run_chain(chain)

    def _run_chain(self, chain: int) -> None:
        for position in self.chains[chain]:
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
            for other in self.after[chain]:
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
