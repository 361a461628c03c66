# SPDX-License-Identifier: Apache-2.0
"""Tensors in other processes: pickled out of band, their memory shared and not copied."""

from __future__ import annotations

import importlib.util
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2
from tests.helpers.shared_memory import double_in_place

NBYTES = 48


@pytest.fixture
def block() -> Iterator[SharedMemory]:
    memory = SharedMemory(create=True, size=NBYTES)
    yield memory
    memory.close()
    memory.unlink()


def in_another_process(block: SharedMemory, stream: bytes) -> Any:
    spawn = multiprocessing.get_context("spawn")  # nothing is inherited
    answers = spawn.SimpleQueue()
    process = spawn.Process(
        target=double_in_place, args=(block.name, stream, [(0, NBYTES)], answers)
    )
    process.start()
    process.join(timeout=300)
    assert process.exitcode == 0
    return answers.get()


@pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
def test_shared_memory_is_written_by_another_process(block: SharedMemory, wrap: type) -> None:
    tensor = wrap(bridge.from_dlpack(block.buf[:NBYTES]).view("float64").view(2, 3))
    tensor.numpy()[...] = [[1, 2, 3], [4, 5, 6]]
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(tensor, protocol=5, buffer_callback=buffers.append)
    shown = np.frombuffer(buffers[0].raw(), "u1")
    assert bridge.shares_memory(shown, np.frombuffer(block.buf, "u1"))
    answer = in_another_process(block, stream)
    assert answer == (wrap.__module__, [2, 3], True, True)
    assert tensor.numpy().tolist() == [[2, 4, 6], [8, 10, 12]]
    del tensor, shown, buffers


@pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
def test_one_copy_takes_any_tensor_there(block: SharedMemory, wrap: type) -> None:
    tensor = wrap(at.arange(6, dtype="float64"))
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(tensor, protocol=5, buffer_callback=buffers.append)
    assert len(stream) < 1000
    block.buf[:NBYTES] = buffers[0].raw()
    assert in_another_process(block, stream) == (wrap.__module__, [6], True, True)
    assert np.frombuffer(bytes(block.buf[:NBYTES])).tolist() == [0, 2, 4, 6, 8, 10]
    assert tensor.numpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_a_queue_passes_a_tensor_in_band() -> None:
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.SimpleQueue()
    queue.put(at.arange(3))
    received = queue.get()
    assert type(received) is at.Tensor
    assert received.tolist() == [0, 1, 2]
    assert not received.readonly


RAY = """
import numpy as np
import ray
import bridge
from bridge import at, caffe2

ray.init(
    num_cpus=1, object_store_memory=100 << 20, include_dashboard=False, log_to_driver=False,
    configure_logging=False,
)
big = 1 << 20
for wrap in (at.Tensor, caffe2.Tensor):
    sent = wrap(bridge.from_dlpack(np.arange(big, dtype="float32")))
    stored = ray.put(sent)
    one, other = ray.get(stored), ray.get(stored)
    assert type(one) is wrap, type(one)
    # both look at the object store's memory, which nobody may write
    assert bridge.shares_memory(one, other)
    assert not bridge.shares_memory(one, sent)
    array = one.numpy()
    assert not array.flags.writeable
    assert array.shape == (big,) and array[-1] == big - 1
    assert bridge.explain(one).readonly
    try:
        at.Tensor(one).fill_(1)
    except bridge.c10.EnforceNotMet:
        pass
    else:
        raise AssertionError("the store's memory was written")
    del one, other, array
ray.shutdown()
print("no copy")
"""


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray_passes_tensors_without_a_copy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RAY], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert done.stdout.splitlines()[-1] == "no copy"
