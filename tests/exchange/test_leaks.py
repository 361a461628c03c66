# SPDX-License-Identifier: Apache-2.0
"""Nothing stays behind: counts and memory are flat over many cycles of each route.

Each test runs in a process of its own, whose memory no other test uses.
"""

import gc
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers.dlpack_consumer import ExchangeTable, take
from tests.helpers.dlpack_producer import ForgetfulProducer, TensorSpec, outstanding
from tests.helpers.isolate import isolated
from tests.helpers.leaks import leaves_nothing, needs_proc

# 16 KiB: a leak of the data of one cycle in a hundred is seen at once.
NUMEL = 4096
CYCLES = 3000
# What an allocator and free lists may keep; a leak of a 100-byte object each cycle exceeds it.
SLACK_BYTES = 256 * 1024

TORCH = torch.zeros(NUMEL)
ARRAY = np.zeros(NUMEL, np.float32)
FROZEN = np.zeros(NUMEL, np.float32)
FROZEN.flags.writeable = False
BYTES = bytearray(4 * NUMEL)
OURS = at.zeros(NUMEL)
FLAT = caffe2.Tensor(OURS)
PRODUCER = ForgetfulProducer(TensorSpec.of_array(ARRAY))
HOSTILE = ForgetfulProducer(TensorSpec.of_array(ARRAY, lanes=2))
STREAM = pickle.dumps(OURS)


def expect_buffer_error(call: Callable[[], Any]) -> None:
    with pytest.raises(BufferError):
        call()


def allocate_and_give() -> None:
    table = ExchangeTable(at.Tensor)
    table.give(table.allocate((NUMEL,)).surrender())


ROUTES: dict[str, Callable[[], Any]] = {
    "torch in": lambda: bridge.from_dlpack(TORCH),
    "torch view in": lambda: bridge.from_dlpack(TORCH[1:]),
    "torch in and out": lambda: bridge.from_dlpack(TORCH).to_torch(),
    "new torch in": lambda: bridge.from_dlpack(torch.zeros(NUMEL)),
    "numpy in": lambda: bridge.from_dlpack(ARRAY),
    "numpy view in": lambda: bridge.from_dlpack(ARRAY[::2]),
    "numpy in and out": lambda: bridge.from_dlpack(ARRAY).numpy(),
    "buffer in": lambda: bridge.from_dlpack(BYTES),
    "producer in": lambda: bridge.from_dlpack(PRODUCER),
    "legacy capsule in": lambda: bridge.from_dlpack(OURS.__dlpack__()),
    "versioned capsule in": lambda: bridge.from_dlpack(OURS.__dlpack__(max_version=(1, 3))),
    "capsule dropped": lambda: OURS.__dlpack__(max_version=(1, 3)),
    "capsule to the consumer": lambda: take(OURS).release(),
    "table to the consumer": lambda: ExchangeTable(at.Tensor).take(OURS).release(),
    "table borrowed": lambda: ExchangeTable(at.Tensor).borrow(OURS),
    "table allocated": allocate_and_give,
    "torch out": lambda: OURS.to_torch(),
    "torch view out": lambda: OURS[2:].to_torch(),
    "numpy out": lambda: OURS.numpy(),
    "memoryview out": lambda: memoryview(OURS).release(),
    "np.from_dlpack": lambda: np.from_dlpack(OURS),
    "torch.from_dlpack": lambda: torch.from_dlpack(OURS),
    "np.asarray": lambda: np.asarray(FLAT),
    "read-only to torch": lambda: bridge.to_torch(FROZEN),
    "copied in": lambda: bridge.from_dlpack(TORCH, copy=True),
    "copied out": lambda: bridge.to_numpy(OURS, copy=True),
    "new memory": lambda: at.empty(NUMEL),
    "wrapper to wrapper": lambda: at.Tensor(caffe2.Tensor(OURS)),
    "views": lambda: OURS.view(64, -1)[1:, ::2].transpose(0, 1),
    "torch operation": lambda: OURS.add(1),
    "torch function": lambda: torch.add(OURS, TORCH),
    "pickle": lambda: pickle.loads(pickle.dumps(OURS)),
    "unpickle": lambda: pickle.loads(STREAM),
    "converted": lambda: bridge.convert(TORCH, "numpy"),
    "hostile producer": lambda: expect_buffer_error(lambda: bridge.from_dlpack(HOSTILE)),
    "object array": lambda: expect_buffer_error(
        lambda: bridge.from_dlpack(np.empty(NUMEL, object))
    ),
    "requires grad": lambda: expect_buffer_error(
        lambda: bridge.from_dlpack(torch.zeros(NUMEL, requires_grad=True))
    ),
    "read-only legacy": lambda: expect_buffer_error(
        lambda: bridge.from_dlpack(FROZEN).__dlpack__()
    ),
    "torch without a copy": lambda: expect_buffer_error(
        lambda: bridge.to_torch(ARRAY[::-1], copy=False)
    ),
}


def counts() -> list[int]:
    watched = (TORCH, ARRAY, FROZEN, BYTES, OURS, FLAT, PRODUCER, None, at.Tensor, caffe2.Tensor)
    return [sys.getrefcount(thing) for thing in watched]


def cycle(route: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        route()


@needs_proc
@pytest.mark.parametrize("name", ROUTES)
@isolated
def test_a_route_leaves_nothing(name: str) -> None:
    route = ROUTES[name]
    cycle(route, CYCLES)
    gc.collect()
    before = counts()
    leaves_nothing(lambda: cycle(route, CYCLES), name, nbytes=SLACK_BYTES, blocks=CYCLES // 10)
    after = counts()
    # None is counted too, and borrowed by interpreters here and there: a handful is not a leak.
    assert all(abs(b - a) < 50 for a, b in zip(before, after, strict=True)), (before, after)
    assert outstanding() == 0


@needs_proc
@isolated
def test_growing_tensors_leave_nothing() -> None:
    def grow() -> None:
        x = caffe2.Tensor([64, 64], "cpu")
        x.mutable_data("float32")
        x.Resize(128, 128)
        x.mutable_data("float64")
        x.Resize(1)

    cycle(grow, CYCLES)
    leaves_nothing(lambda: cycle(grow, CYCLES), "growing", nbytes=SLACK_BYTES)


@isolated
def test_allocator_statistics_come_back() -> None:
    stats = c10.GetAllocator("cpu").stats
    gc.collect()
    before = stats.allocated_bytes
    held = [at.zeros(NUMEL) for _ in range(4)]
    assert stats.allocated_bytes - before >= 4 * 4 * NUMEL
    out = held[0].numpy(), held[1].to_torch(), held[2].__dlpack__(), memoryview(held[3])
    del held
    gc.collect()
    assert stats.allocated_bytes - before >= 4 * 4 * NUMEL
    del out
    gc.collect()
    assert stats.allocated_bytes == before
