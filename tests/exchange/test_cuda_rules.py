# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: copies of every element type, managed memory, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_producer import Producer, TensorSpec

pytestmark = pytest.mark.cuda
MANAGED = 13
NARROW = ("int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e3m4", "float8_e4m3b11fnuz")
PLAIN = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def values(name: str) -> Any:
    kind = getattr(ml_dtypes, name, None) or np.dtype(name)
    return np.array([[1, 0, 1], [0, 1, 1]]).astype(kind)


@pytest.mark.parametrize("name", [*PLAIN, *FLOATS, *FLOAT8, *NARROW])
def test_each_element_type_is_copied_to_the_device_and_back(name: str) -> None:
    host = values(name)
    for array in (host, host[::-1, ::-1], host[:, ::2], host.T):
        x = bridge.from_dlpack(array)
        for there in (x.cuda(), bridge.from_dlpack(array, device="cuda"), x.to("cuda")):
            assert there.device() == "cuda:0"
            assert there.dtype() == c10.TypeMeta.Make(array.dtype)
            assert (there.cpu().numpy() == array).all()
            back = there[::-1]
            assert (back.clone().cpu().numpy() == array[::-1]).all()
            assert (back.cpu().numpy() == array[::-1]).all()


def managed() -> tuple[torch.Tensor, at.Tensor]:
    """Memory of the device that says it is managed; the host must not touch it here."""
    t = torch.arange(6.0, device="cuda")
    spec = TensorSpec(t.data_ptr(), (6,), (1,), device=(MANAGED, 0), owner=t)
    return t, bridge.from_dlpack(Producer(spec))


def test_managed_memory_is_copied_as_cuda_memory() -> None:
    t, x = managed()
    six = list(range(6))
    for copy in (x.clone(), x.contiguous(), x.to("float64"), x + 0, caffe2.Tensor(x).Clone()):
        assert at.Tensor(copy).tolist() == six
    for copy in (x.clone(), x[::2].contiguous(), x.to("float64"), bridge.from_dlpack(x, copy=True)):
        assert copy.device() == "cuda:0"
    assert x.contiguous() is x or x.contiguous().data_ptr() == t.data_ptr()
    assert x[::-1].clone().tolist() == six[::-1]
    assert x.cpu().tolist() == six
    assert at.empty_like(x).device() == "cuda:0"
    assert bridge.to_torch(x, copy=True).tolist() == six


def test_managed_memory_is_shared_with_torch() -> None:
    t, x = managed()
    for out in (x.to_torch(), torch.from_dlpack(x), bridge.to_torch(caffe2.Tensor(x))):
        assert (out.device.type, out.data_ptr()) == ("cuda", t.data_ptr())
    x.fill_(3)
    assert t.tolist() == [3] * 6


def test_the_interface_describes_the_element_types_that_it_can_name() -> None:
    class Described:
        def __init__(self, x: at.Tensor) -> None:
            self.x = x
            self.__cuda_array_interface__ = x.__cuda_array_interface__

    for name in (*PLAIN, *FLOATS):
        x = bridge.from_dlpack(values(name), device="cuda")
        again = bridge.from_dlpack(Described(x))
        assert (again.data_ptr(), again.dtype()) == (x.data_ptr(), x.dtype())
    for name in (*FLOAT8, *NARROW):
        with pytest.raises(AttributeError, match="no name"):
            Described(bridge.from_dlpack(values(name), device="cuda"))


def test_page_locked_memory_is_the_hosts() -> None:
    both = c10.device("cuda").pinned_memory(True).dtype("float32")
    for make in (
        lambda: at.empty(2, both),
        lambda: at.rand(2, both),
        lambda: at.zeros(2, device="cuda", pinned_memory=True),
        lambda: caffe2.empty((2,), both),
    ):
        with pytest.raises(c10.EnforceNotMet, match="page-locked"):
            make()
    assert at.empty(2, device="cpu", pinned_memory=True).device() == "cuda_host"
    assert at.Tensor(caffe2.empty((2,), c10.pinned_memory(True))).device() == "cuda_host"


def test_set_stays_on_its_device() -> None:
    there, here = at.zeros(2, device="cuda"), at.ones(3)
    for target, source in ((there, here), (here, there), (there, here.storage())):
        before = target.tolist()
        with pytest.raises(c10.EnforceNotMet, match="Copy it there first"):
            target.set_(source)
        assert target.tolist() == before
    assert there.set_(here.cuda()).tolist() == [1, 1, 1]


def test_two_graphs_are_not_joined() -> None:
    x = at.ones(4, device="cuda")
    caffe2.Tensor(x)
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        first.capture_begin(capture_error_mode="thread_local")
    with torch.cuda.stream(two):
        second.capture_begin(capture_error_mode="thread_local")
    with torch.cuda.stream(one):
        x.add_(1)
        with pytest.raises(BufferError, match="captured"):
            x.__dlpack__(stream=two.cuda_stream)
        first.capture_end()
    with torch.cuda.stream(two):
        x.mul_(3)
        second.capture_end()
    first.replay()
    second.replay()
    torch.cuda.synchronize()
    assert x.tolist() == [6, 6, 6, 6]


def test_streams_of_one_graph_are_ordered() -> None:
    x = at.ones(4, device="cuda")
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        graph.capture_begin(capture_error_mode="thread_local")
        x.add_(1)
        capsule = x.__dlpack__(stream=two.cuda_stream, max_version=(1, 3))
    with torch.cuda.stream(two):
        doubled = torch.from_dlpack(capsule) * 2
    one.wait_stream(two)
    with torch.cuda.stream(one):
        graph.capture_end()
    graph.replay()
    torch.cuda.synchronize()
    assert doubled.tolist() == [4, 4, 4, 4]


def test_a_device_beyond_the_last_is_refused() -> None:
    count = torch.cuda.device_count()
    t = torch.ones(2, device="cuda")
    spec = TensorSpec(t.data_ptr(), (2,), (1,), device=(MANAGED, count), owner=t)
    with pytest.raises(BufferError):
        bridge.to_torch(Producer(spec))
    with pytest.raises(BufferError):
        bridge.to_torch(Producer(spec.but(device=(abi.CUDA, count))))


def test_counts_of_a_copy() -> None:
    t = torch.arange(6.0, device="cuda")
    for copy, copied in ((None, 0), (True, 24)):
        with bridge.audit() as log:
            bridge.from_dlpack(t, copy=copy)
        assert log.copied_bytes == copied
    with bridge.audit() as log:
        bridge.from_dlpack(t, device="cpu")
    assert log.copied_bytes == 24


@pytest.mark.usefixtures("fresh_workspace")
def test_blobs_and_saved_tensors_come_back_on_the_device(tmp_path: Any) -> None:
    t = torch.arange(6.0, device="cuda")
    workspace.FeedBlob("x", t)
    assert workspace.FetchTorch("x") is t
    blob = workspace.SerializeBlob("x")
    workspace.DeserializeBlob("x", blob)
    assert workspace.FetchBlob("x").tolist() == list(range(6))
    path = tmp_path / "x.pt"
    torch.save(bridge.from_dlpack(t).to_torch(), path)
    assert torch.load(path).device == t.device
