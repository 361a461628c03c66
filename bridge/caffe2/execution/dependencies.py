# SPDX-License-Identifier: Apache-2.0
"""Which operators of a net wait for which, and the chains that they form.

An operator waits for the last one that wrote a blob which it reads or writes, and for all that read
a blob which it writes. So each reads what it would read in the order of the net. A blob that is a
control input counts as read. Operators with nets as arguments wait for all before them, and all
after wait for them, since they may use any blob. Operators that draw random numbers keep their
order, so that they draw the same numbers.

Operators of which each is the only successor of the one before are one chain.
Follows caffe2/core/net_async_scheduling.cc and net_async_tracing, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.function_operator import FunctionOperator

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
