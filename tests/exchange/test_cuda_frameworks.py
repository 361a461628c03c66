# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: CuPy's arrays, and JAX's where JAX has a GPU."""

import gc
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace

pytestmark = pytest.mark.cuda
MANAGED = 13


@pytest.fixture
def cupy() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of how CuPy was installed
        found = pytest.importorskip("cupy", reason="CuPy is not installed")
        try:
            found.arange(2).sum().item()  # which takes a kernel that it compiles
        except Exception as error:  # noqa: BLE001  whatever keeps it from working
            pytest.skip(f"CuPy does not work here: {error}")
    return found


def six(cupy: Any) -> Any:
    return cupy.arange(6, dtype=cupy.float32).reshape(2, 3)


def test_arrays_of_cupy_are_shared(cupy: Any) -> None:
    a = six(cupy)
    for array in (a, a[1:], a.T, a[:, ::2], a[::-1], a[::-1, ::-1]):
        x = bridge.from_dlpack(array)
        assert x.device() == f"cuda:{a.device.id}"
        assert x.data_ptr() == array.data.ptr
        assert x.tolist() == array.tolist()
        assert x.to_torch().cpu().tolist() == array.tolist()
        assert x.clone().cpu().numpy().tolist() == array.tolist()
    t = bridge.to_torch(a)
    assert t.data_ptr() == a.data.ptr
    t.fill_(7)
    torch.cuda.synchronize()
    assert a.tolist() == [[7, 7, 7], [7, 7, 7]]
    with pytest.raises(BufferError, match="negative"):
        bridge.to_torch(a[::-1], copy=False)


def test_tensors_are_shared_with_cupy(cupy: Any) -> None:
    t = torch.arange(6.0, device="cuda").reshape(2, 3)
    for x in (t, at.Tensor(bridge.from_dlpack(t)), caffe2.Tensor(bridge.from_dlpack(t))):
        array = bridge.to_cupy(x)
        assert isinstance(array, cupy.ndarray)
        assert array.data.ptr == t.data_ptr()
        assert array.tolist() == t.tolist()
        assert cupy.from_dlpack(x).data.ptr == t.data_ptr()
    assert bridge.to_cupy(t.t()).tolist() == t.t().tolist()
    assert bridge.to_cupy(t, copy=True).data.ptr != t.data_ptr()
    a = six(cupy)
    assert bridge.to_cupy(a) is a
    described = cupy.asarray(bridge.from_dlpack(t))  # by the CUDA Array Interface, or DLPack
    assert described.data.ptr == t.data_ptr()


def test_host_memory_is_copied_for_cupy_and_back_when_asked(cupy: Any) -> None:
    host = np.arange(3.0)
    assert bridge.to_cupy(host).tolist() == [0, 1, 2]
    with pytest.raises(BufferError):
        bridge.to_cupy(host, copy=False)
    with pytest.raises(BufferError):
        bridge.to_numpy(cupy.arange(3))
    assert bridge.from_dlpack(cupy.arange(3), device="cpu").numpy().tolist() == [0, 1, 2]


def test_read_only_memory_is_copied_for_cupy(cupy: Any) -> None:
    t = torch.arange(3.0, device="cuda")

    class Frozen:
        def __init__(self) -> None:
            memory = t.__cuda_array_interface__
            self.__cuda_array_interface__ = {**memory, "data": (t.data_ptr(), True)}

    frozen = bridge.from_dlpack(Frozen())
    array = bridge.to_cupy(frozen)
    assert array.data.ptr != t.data_ptr()
    assert array.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="read-only"):
        bridge.to_cupy(frozen, copy=False)


def test_streams_of_cupy_and_torch_wait_for_each_other(cupy: Any) -> None:
    n = 1 << 20
    a = cupy.zeros(n, dtype=cupy.float32)
    t = torch.zeros(n, device="cuda")
    theirs, ours = cupy.cuda.Stream(non_blocking=True), torch.cuda.Stream()
    torch.cuda.synchronize()
    with theirs, torch.cuda.stream(torch.cuda.ExternalStream(theirs.ptr)):
        torch.cuda._sleep(100_000_000)  # on CuPy's stream
        a.fill(1)
        with torch.cuda.stream(ours):
            total = bridge.to_torch(a).sum()
    torch.cuda.synchronize()
    assert total.item() == n
    with theirs, torch.cuda.stream(ours):
        torch.cuda._sleep(100_000_000)
        t.fill_(1)
        sum_of_theirs = bridge.to_cupy(t).sum()
    torch.cuda.synchronize()
    assert float(sum_of_theirs) == n


def test_memory_of_cupy_is_held_and_freed(cupy: Any) -> None:
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        a = cupy.arange(1 << 16)
    held = pool.used_bytes()
    assert held >= 8 << 16
    x = bridge.from_dlpack(a)
    t = x.to_torch()
    del a, x
    gc.collect()
    assert pool.used_bytes() == held
    assert t[-1].item() == (1 << 16) - 1
    del t
    gc.collect()
    assert pool.used_bytes() == 0


def test_managed_memory_of_cupy_is_shared(cupy: Any) -> None:
    pool = cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
    with cupy.cuda.using_allocator(pool.malloc):
        a = six(cupy)
    if a.__dlpack_device__()[0] != MANAGED:
        pytest.skip("this CuPy does not say that memory is managed")
    x = bridge.from_dlpack(a)
    assert x.__dlpack_device__()[0] == MANAGED
    t = x.to_torch()
    assert (t.device.type, t.data_ptr()) == ("cuda", a.data.ptr)
    assert t.cpu().tolist() == a.tolist()
    assert bridge.to_cupy(x).data.ptr == a.data.ptr


@pytest.mark.usefixtures("fresh_workspace")
def test_a_workspace_shares_arrays_of_cupy(cupy: Any) -> None:
    a = six(cupy)
    workspace.FeedBlob("x", a)
    assert workspace.FetchTorch("x").data_ptr() == a.data.ptr
    assert workspace.FetchBlob("x").tolist() == a.tolist()


@pytest.fixture
def jax_array() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax", reason="JAX is not installed")
        try:
            gpu = jax.devices("cuda")[0]
        except RuntimeError as error:
            pytest.skip(f"JAX has no GPU here: {error}")
        return jax.device_put(np.arange(6, dtype=np.float32).reshape(2, 3), gpu)


def test_arrays_of_jax_are_shared_read_only(jax_array: Any) -> None:
    x = bridge.from_dlpack(jax_array)
    assert x.device().type.name == "CUDA"
    assert x.readonly
    assert x.data_ptr() == jax_array.unsafe_buffer_pointer()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.to_torch().data_ptr() != x.data_ptr()
    assert x.to_torch(writable=True).data_ptr() == x.data_ptr()
    with pytest.raises(BufferError, match="read-only"):
        bridge.to_torch(jax_array, copy=False)


def test_tensors_go_to_jax_on_the_device(jax_array: Any) -> None:
    t = torch.arange(6.0, device="cuda").reshape(2, 3)
    for x in (t, t.t(), bridge.from_dlpack(t)):
        array = bridge.to_jax(x)
        assert next(iter(array.devices())).platform != "cpu"
        assert array.tolist() == x.tolist()
    assert bridge.to_jax(jax_array) is jax_array
