# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: the host waits before TensorFlow gets the memory, which takes no stream."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.cuda

# What the bridge uses of TensorFlow, whose consumer reads the memory on a stream of its own.
CODE = """
import sys, types
import torch
import bridge

class Dtype:
    def __init__(self, number):
        self.as_datatype_enum = number

def from_dlpack(capsule):
    with torch.cuda.stream(theirs):
        return torch.from_dlpack(capsule).sum().item()

def gpus(kind):
    return [0] * torch.cuda.device_count()

tf = types.ModuleType("tensorflow")
names = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64"
for number, name in enumerate([*names.split(), "complex64", "complex128", "string"], 1):
    setattr(tf, name, Dtype(number))
tf.Tensor, tf.Variable = type("Tensor", (), {}), type("Variable", (), {})
tf.__internal__ = types.SimpleNamespace(EagerTensor=type("EagerTensor", (tf.Tensor,), {}))
dlpack = types.SimpleNamespace(to_dlpack=None, from_dlpack=from_dlpack)
tf.experimental = types.SimpleNamespace(dlpack=dlpack)
tf.config = types.SimpleNamespace(list_physical_devices=gpus)
sys.modules["tensorflow"] = tf

for device in {0, torch.cuda.device_count() - 1}:
    ours, theirs = torch.cuda.Stream(device), torch.cuda.Stream(device)
    t = torch.zeros(1 << 14, device=f"cuda:{device}")
    torch.cuda.synchronize(device)
    with torch.cuda.stream(ours):
        torch.cuda._sleep(100_000_000)
        t.fill_(1)
        with torch.cuda.device(0):
            found = bridge.to_tensorflow(bridge.from_dlpack(t))
    assert found == 1 << 14, found
"""


def test_the_host_waits_before_tensorflow_has_the_memory() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=300)
