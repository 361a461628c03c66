# SPDX-License-Identifier: Apache-2.0
"""Every recorded sequence again, step by step, with the whole state compared after each step.

Three times: as it is; with an allocator that never gives one address twice, so that a buffer that
should have been dropped, or kept, is told by its address and by when it came back; and with a view
held of everything that is ever readable, which must change nothing but when memory is freed.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from bridge import c10

from .observer import Buffers, check_tensors
from .transcripts import Sequence, Step, load
from .world import DEFAULT_MAX_KEEP, World, set_flags

SEQUENCES = [
    sequence for name in ("rules", "random", "storage", "strings") for sequence in load(name)
]
every_sequence = pytest.mark.parametrize(
    "sequence", SEQUENCES, ids=[sequence.name.replace(" ", "_") for sequence in SEQUENCES]
)


class QuarantineAllocator(c10.Allocator):
    """Host memory whose addresses stay taken until the allocator is gone."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: list[Any] = []
        self.given: set[int] = set()
        self.live: set[int] = set()
        self.released: list[int] = []

    def raw_allocate(self, nbytes: int) -> int:
        block = ctypes.create_string_buffer(nbytes + 64)
        self._blocks.append(block)
        address = (ctypes.addressof(block) + 63) & ~63
        self.given.add(address)
        self.live.add(address)
        return address

    def raw_deallocate(self, address: int) -> None:
        self.live.remove(address)
        self.released.append(address)


@pytest.fixture(autouse=True)
def default_flags() -> Iterator[None]:
    yield
    set_flags(keep=True, max_keep=DEFAULT_MAX_KEEP)


@pytest.fixture
def quarantine() -> Iterator[QuarantineAllocator]:
    original = c10.GetAllocator("cpu")
    allocator = QuarantineAllocator()
    c10.SetAllocator("cpu", allocator)
    yield allocator
    c10.SetAllocator("cpu", original)


def run_step(world: World, step: Step) -> None:
    """Run one operation, which is refused exactly where it was."""
    if step.error is None:
        world.run(step.op)
        return
    with pytest.raises(c10.EnforceNotMet):
        world.run(step.op)


def check_step(world: World, step: Step, number: int, buffers: Buffers) -> None:
    try:
        check_tensors(world.tensors, step.tensors, buffers)
    except AssertionError as error:
        raise AssertionError(f"step {number}, {step.op!r}: {error}") from error


def check_deleters(world: World, sequence: Sequence) -> None:
    """Once the tensors are gone, each deleter has been called once."""
    world.tensors.clear()
    given = [
        int(words[2])
        for words in (step.op.split(" ") for step in sequence.steps() if step.error is None)
        if words[0] in ("external", "storage_external") and words[5] == "1"
    ]
    if sorted(world.deleted) != given:
        gc.collect()
    assert sorted(world.deleted) == given


@every_sequence
def test_each_recorded_sequence_gives_the_recorded_states(sequence: Sequence) -> None:
    world, buffers = World(), Buffers()
    for number, step in enumerate(sequence.steps()):
        world.deleted.clear()
        run_step(world, step)
        assert world.deleted == step.deleted, f"{number}: {step.op}"
        check_step(world, step, number, buffers)


@every_sequence
def test_memory_is_freed_when_caffe2_freed_it(
    sequence: Sequence, quarantine: QuarantineAllocator
) -> None:
    world, buffers = World(), Buffers(quarantine.given)
    for number, step in enumerate(sequence.steps()):
        quarantine.released.clear()
        run_step(world, step)
        # Memory seen before and freed now: no earlier, no later than the real tensor frees it.
        let_go = set(quarantine.released) & buffers.seen()
        assert let_go == buffers.permanent(step.released), f"step {number}, {step.op!r}"
        check_step(world, step, number, buffers)
    check_deleters(world, sequence)
    assert not quarantine.live


@every_sequence
def test_views_of_every_step_stay_readable(sequence: Sequence) -> None:
    world, buffers = World(), Buffers()
    views: list[Any] = []
    for number, step in enumerate(sequence.steps()):
        run_step(world, step)
        check_step(world, step, number, buffers)
        views += [
            tensor.data()
            for name, tensor in world.tensors.items()
            if step.tensors[name].get("dtype_initialized") and tensor.storage_initialized()
        ]
    world.tensors.clear()
    while views:  # every one can be read still
        assert len(list(views[-1])) == len(views[-1])
        views.pop()
    check_deleters(world, sequence)
