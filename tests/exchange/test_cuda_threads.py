# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: threads, each with a stream of its own, that exchange at the same time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import ExchangeTable

pytestmark = pytest.mark.cuda
THREADS, ROUNDS, N = 4, 12, 1 << 12


def in_threads(work: Callable[[int], None]) -> None:
    """Call `work` with 0, 1, … in threads that begin together; raise their first error."""
    barrier = threading.Barrier(THREADS)

    def begin(index: int) -> None:
        barrier.wait(60)
        work(index)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(begin, index) for index in range(THREADS)]:
            done.result()


def one_exchange(index: int, step: int) -> tuple[at.Tensor, float]:
    """Hand memory that the current stream still writes through both wrappers; and what it holds."""
    value = 1 + index * ROUNDS + step
    t = torch.zeros(N, device="cuda")
    torch.cuda._sleep(1_000_000)
    t.fill_(value)
    x = at.Tensor(caffe2.Tensor(bridge.from_dlpack(t)))
    made = at.empty(N, device="cuda").copy_(x)
    made = bridge.from_dlpack(torch.from_dlpack(made) + 1)
    return made.clone().contiguous(), value + 1


def test_each_thread_has_its_stream() -> None:
    table = ExchangeTable(at.Tensor)

    def work(index: int) -> None:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for step in range(ROUNDS):
                x, value = one_exchange(index, step)
                assert x.__cuda_array_interface__["stream"] == side.cuda_stream
                assert table.work_stream((abi.CUDA, 0)) == side.cuda_stream
                assert x.tolist() == [value] * N
        assert torch.cuda.current_stream() == torch.cuda.default_stream()

    in_threads(work)


def test_tensors_go_from_thread_to_thread() -> None:
    """The stream of each thread waits for that of the one before."""
    handed: list[Any] = [None] * THREADS
    made = [threading.Event() for _ in range(THREADS)]
    streams = [torch.cuda.Stream() for _ in range(THREADS)]

    def work(index: int) -> None:
        with torch.cuda.stream(streams[index]):
            if not index:
                x = at.zeros(N, device="cuda")
            else:
                assert made[index - 1].wait(60)
                x = bridge.from_dlpack(handed[index - 1])
            torch.cuda._sleep(20_000_000)
            after = streams[min(index + 1, THREADS - 1)].cuda_stream
            x = x.add(1)
            handed[index] = x.__dlpack__(stream=after, max_version=(1, 3))
            made[index].set()
            x.to_torch().record_stream(streams[min(index + 1, THREADS - 1)])

    in_threads(work)
    with torch.cuda.stream(streams[-1]):
        assert bridge.from_dlpack(handed[-1]).tolist() == [THREADS] * N


@pytest.mark.usefixtures("fresh_workspace")
def test_each_thread_exchanges_blobs_on_its_stream() -> None:
    def work(index: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for step in range(ROUNDS):
                x, value = one_exchange(index, step)
                workspace.FeedBlob(f"x{index}", x)
                assert workspace.FetchBlob(f"x{index}").tolist() == [value] * N
                workspace.FetchTorch(f"x{index}").zero_()
                assert x.tolist() == [0] * N

    in_threads(work)


def test_all_threads_read_one_tensor_after_its_writer() -> None:
    """Reads of one tensor at once: each on its own stream, which waits for the tensor's."""
    t = torch.zeros(N, device="cuda")
    writer = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(writer):
        torch.cuda._sleep(100_000_000)
        t.fill_(3)
        x = bridge.from_dlpack(t)
    sides = [torch.cuda.Stream() for _ in range(THREADS)]

    def work(index: int) -> None:
        with torch.cuda.stream(writer):
            capsule = x.__dlpack__(stream=sides[index].cuda_stream, max_version=(1, 3))
        with torch.cuda.stream(sides[index]):
            assert torch.from_dlpack(capsule).sum().item() == 3 * N

    in_threads(work)


def test_nothing_is_left_when_threads_have_ended() -> None:
    def work(index: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            kept = [one_exchange(index, step)[0] for step in range(ROUNDS)]
            lent = [x.__dlpack__(stream=-1, max_version=(1, 3)) for x in kept]
            del kept[::2], lent[1::2]
        torch.cuda.synchronize()

    gc.collect()
    in_threads(work)  # what is loaded and made once
    gc.collect()
    before = torch.cuda.memory_allocated()
    in_threads(work)
    gc.collect()
    assert torch.cuda.memory_allocated() == before
