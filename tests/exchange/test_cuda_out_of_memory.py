# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device that is full: what does not fit is a MemoryError, and nothing has changed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("fresh_workspace")]
MIB = 1 << 20
# Beside the tensor of 8 MiB this fits into the memory neither with it nor in its place.
LARGE = 96 * MIB
BYTES = c10.dtype("uint8").device("cuda")


@pytest.fixture
def full() -> Iterator[None]:
    """Let torch have 64 MiB of the device more than it has."""
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 64 * MIB) / total, 0)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0, 0)


Call = Callable[[at.Tensor, caffe2.Tensor, at.Tensor], Any]
MAKE: dict[str, Call] = {
    "empty": lambda x, c, host: at.empty(LARGE, dtype="uint8", device="cuda"),
    "zeros": lambda x, c, host: at.zeros(LARGE, dtype="uint8", device="cuda"),
    "caffe2.empty": lambda x, c, host: caffe2.empty((LARGE,), BYTES),
    "cuda": lambda x, c, host: host.cuda(),
    "to": lambda x, c, host: host.to("cuda:0"),
    "to a type": lambda x, c, host: x.expand(LARGE, 8 * MIB)[:, 0].to("float64"),
    "from_dlpack": lambda x, c, host: bridge.from_dlpack(host, device="cuda"),
    "asarray": lambda x, c, host: bridge.asarray(host, device="cuda"),
    "contiguous": lambda x, c, host: x[:1].expand(LARGE).contiguous(),
    "clone": lambda x, c, host: x[:1].expand(LARGE).clone(),
    "dl_device": lambda x, c, host: host.__dlpack__(dl_device=(2, 0), max_version=(1, 3)),
    "caffe2.Tensor": lambda x, c, host: caffe2.Tensor(caffe2.Tensor(host), "cuda"),
    "mutable_data": lambda x, c, host: caffe2.Tensor((LARGE,), "cuda").mutable_data("uint8"),
    "FeedBlob": lambda x, c, host: workspace.FeedBlob("x", host.numpy(), "cuda:0"),
}
GROW: dict[str, Call] = {
    "resize_": lambda x, c, host: x.resize_(LARGE),
    "Extend": lambda x, c, host: c.Extend(LARGE, 0),
    "ExtendTo": lambda x, c, host: c.ExtendTo(LARGE, 50),
    "ReserveSpace": lambda x, c, host: c.ReserveSpace(LARGE),
    "CopyFrom": lambda x, c, host: c.CopyFrom(caffe2.Tensor(host)),
    "ReinitializeAndCopyFrom": lambda x, c, host: caffe2.ReinitializeAndCopyFrom(
        c, BYTES, caffe2.Tensor(host)
    ),
    "copy to the device": lambda x, c, host: x.set_(host.cuda()),
}


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("name", [*MAKE, *GROW])
def test_an_allocation_that_does_not_fit_changes_nothing(name: str) -> None:
    x = at.full((8 * MIB,), 7, dtype="uint8", device="cuda")
    c = caffe2.Tensor(x)
    t = x.to_torch()
    host = at.ones(LARGE, dtype="uint8")
    workspace.FeedBlob("x", x)
    before = torch.cuda.memory_allocated()
    with pytest.raises(MemoryError, match="out of memory"):
        {**MAKE, **GROW}[name](x, c, host)
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    for one in (x, at.Tensor(c), bridge.from_dlpack(workspace.FetchTorch("x"))):
        assert one.sizes() == (8 * MIB,)
        assert one.data_ptr() == t.data_ptr()
    assert c.capacity_nbytes() == 8 * MIB
    assert t.min().item() == t.max().item() == 7
    assert at.zeros(8 * MIB, dtype="uint8", device="cuda").tolist()[-1] == 0  # the device works


@pytest.mark.usefixtures("full")
def test_a_tensor_that_was_resized_is_allocated_when_there_is_memory() -> None:
    c = caffe2.Tensor(at.zeros(8 * MIB, dtype="uint8", device="cuda"))
    c.Resize(LARGE)
    with pytest.raises(MemoryError):
        c.mutable_data("uint8")
    assert c.sizes() == (LARGE,)
    c.Resize(4)
    c.mutable_data("uint8").fill_(3)
    assert at.Tensor(c).tolist() == [3] * 4


@pytest.mark.usefixtures("full")
def test_a_net_that_lacks_memory_leaves_its_outputs() -> None:
    net = core.Net("net")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 0)):
        net.ConstantFill([], "y", shape=[LARGE], value=1.0)
    workspace.FeedBlob("y", torch.ones(2, device="cuda"))
    with pytest.raises(MemoryError, match="'ConstantFill'"):
        workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), np.ones(2, np.float32))
