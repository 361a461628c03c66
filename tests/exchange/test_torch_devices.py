# SPDX-License-Identifier: Apache-2.0
"""Memory on devices that torch does not have is refused, and not given to torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge.exchange.torch_devices import require_torch_device
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_producer import Producer, TensorSpec
from tests.helpers.fake_cuda import FakeCuda
from tests.helpers.isolate import isolated

OPENCL, VULKAN, METAL, ROCM, MANAGED, ONEAPI, MAIA = 4, 7, 8, 10, 13, 14, 17
ABSENT = [(kind, 0) for kind in (OPENCL, VULKAN, METAL, ROCM, abi.EXT_DEV, ONEAPI, MAIA)]
cuda_absent = pytest.mark.skipif(torch.cuda.is_available(), reason="torch has CUDA here")


def on(device: tuple[int, int]) -> Any:
    return bridge.from_dlpack(
        Producer(TensorSpec.of_array(np.arange(6, dtype=np.float32), device=device))
    )


@pytest.mark.parametrize(
    "device",
    [*ABSENT, *(pytest.param((kind, 0), marks=cuda_absent) for kind in (abi.CUDA, MANAGED))],
)
@isolated
def test_memory_of_a_device_that_is_not_there_is_refused(device: tuple[int, int]) -> None:
    x = on(device)
    calls: list[Any] = [
        x.to_torch,
        lambda: bridge.to_torch(x, writable=True),
        lambda: torch.from_dlpack(x),
        lambda: x + 1,
    ]
    if device[0] != abi.EXT_DEV:  # which is host memory here
        calls += [x.cpu, x.tolist, lambda: bridge.from_dlpack(x, device="cpu")]
    for call in calls:
        with pytest.raises(BufferError, match="no such device here"):
            call()
    assert repr(x).startswith("at.Tensor")


def test_memory_of_each_device_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeCuda().install(monkeypatch)
    for index in (0, 1):
        require_torch_device(abi.CUDA, index)
        require_torch_device(MANAGED, index)
    with pytest.raises(BufferError, match="sees 2"):
        require_torch_device(abi.CUDA, 2)
    with pytest.raises(BufferError, match="rocm"):
        require_torch_device(ROCM, 0)
    monkeypatch.setattr(torch.version, "hip", "6.0")
    require_torch_device(ROCM, 1)
    with pytest.raises(BufferError, match="cuda:0"):
        require_torch_device(abi.CUDA, 0)
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 1)
    require_torch_device(ONEAPI, 0)
    for kind in (abi.CPU, abi.CUDA_HOST):
        require_torch_device(kind, 0)


def test_torchs_reason_is_one_line() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    with pytest.raises(BufferError, match="int4") as raised:
        bridge.to_torch(np.array([1], ml_dtypes.int4))
    assert "\n" not in str(raised.value)
