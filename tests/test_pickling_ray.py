# SPDX-License-Identifier: Apache-2.0
"""Tensors through Ray's object store and Dask's serialisation: their own pickling, no copy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2

ROOT = Path(__file__).parents[1]

# A program of its own: Ray starts processes and threads, and warns.
PROGRAM = """
import logging
import numpy as np
import ray
import bridge
from bridge import at, caffe2

def mapped(tensor):
    address = bridge.to_numpy(tensor).ctypes.data
    for line in open("/proc/self/maps"):
        first, last = (int(end, 16) for end in line.split()[0].split("-"))
        if first <= address < last:
            return line.split()[5]

logging.getLogger("ray").setLevel(logging.ERROR)
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
array = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)
for wrap in (at.Tensor, caffe2.Tensor):
    stored = ray.put(wrap(bridge.from_dlpack(array)))
    first, second = ray.get(stored), ray.get(stored)
    assert type(first) is wrap, type(first)
    assert bridge.shares_memory(first, second)
    assert "plasma" in mapped(first), mapped(first)
    assert at.Tensor(first).readonly
    assert np.array_equal(bridge.to_numpy(first), array)

@ray.remote
def doubled(tensor):
    assert "plasma" in mapped(tensor), mapped(tensor)
    return type(tensor)(at.Tensor(tensor) * 2)

for wrap in (at.Tensor, caffe2.Tensor):
    answer = ray.get(doubled.remote(wrap(bridge.from_dlpack(array))))
    assert type(answer) is wrap
    assert "plasma" in mapped(answer)
    assert np.array_equal(bridge.to_numpy(answer), 2 * array)
    del answer
ray.shutdown()
print("shared")
"""


def test_ray_gets_tensors_on_the_memory_of_its_store(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "shared\n"), done.stdout + done.stderr


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
def test_dask_moves_tensors_as_frames(wrap: type) -> None:
    protocol: Any = pytest.importorskip("distributed.protocol")
    array = np.arange(1200.0).reshape(30, 40)
    tensor = wrap(bridge.from_dlpack(array))
    header, frames = protocol.serialize(tensor)
    assert max(memoryview(frame).nbytes for frame in frames) == array.nbytes
    there = protocol.deserialize(header, frames)
    assert type(there) is wrap
    assert bridge.shares_memory(there, array)
    # Over the wire the frames are new memory, and the tensor is on it.
    received = [bytearray(frame) for frame in frames]
    answer = protocol.deserialize(header, received)
    assert bridge.to_numpy(answer).tolist() == array.tolist()
    assert any(bridge.shares_memory(answer, frame) for frame in received)
