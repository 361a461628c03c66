# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: the host waits for nothing that stays there, and each stream for what it needs.

Every exchange is done while the stream of the source is busy. What comes too early reads the old
values; what waits on the host is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from bridge.exchange.streams import synchronise_host
from tests.helpers import dlpack_structs as abi
from tests.helpers.cuda_producers import AskedOnStream, DescribedOnStream, NoStream
from tests.helpers.dlpack_consumer import ExchangeTable
from tests.helpers.dlpack_producer import Producer, TensorSpec
from tests.helpers.dlpack_table import Table, producer_type
from tests.helpers.host_waits import counter, no_host_waits

pytestmark = pytest.mark.cuda
both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
several = pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason="torch sees fewer than two CUDA devices"
)
N = 1 << 16
MANAGED = 13


def keep_busy() -> None:
    """Give torch's current stream work for some 50 ms."""
    torch.cuda._sleep(100_000_000)


def busy(t: torch.Tensor) -> None:
    keep_busy()
    t.fill_(1)


IMPORTS: dict[str, Callable[[torch.Tensor, torch.cuda.Stream], Any]] = {
    "interface": DescribedOnStream,
    "method": AskedOnStream,
}


@pytest.mark.parametrize("how", IMPORTS)
def test_our_stream_waits_for_the_producers(how: str) -> None:
    theirs, ours = torch.cuda.Stream(), torch.cuda.Stream()
    t = torch.zeros(N, device="cuda")
    bridge.from_dlpack(IMPORTS[how](t, theirs))  # loads what is loaded once
    torch.cuda.synchronize()
    with torch.cuda.stream(theirs):
        busy(t)
    with torch.cuda.stream(ours), no_host_waits():
        total = bridge.from_dlpack(IMPORTS[how](t, theirs)).to_torch().sum()
    with torch.cuda.stream(ours):
        assert total.item() == N


def test_our_stream_waits_for_the_default_one_of_a_producer_without_streams() -> None:
    ours = torch.cuda.Stream()
    t = torch.zeros(N, device="cuda")
    bridge.from_dlpack(NoStream(t))  # loads what is loaded once
    torch.cuda.synchronize()
    busy(t)
    with torch.cuda.stream(ours), no_host_waits():
        total = bridge.from_dlpack(NoStream(t)).to_torch().sum()
    with torch.cuda.stream(ours):
        assert total.item() == N


@pytest.mark.parametrize("on_default", [False, True])
def test_our_stream_waits_for_the_stream_of_a_table(on_default: bool) -> None:
    theirs, ours = torch.cuda.Stream(), torch.cuda.Stream()
    if on_default:
        theirs = torch.cuda.default_stream()
    t = torch.zeros(N, device="cuda")
    table = Table(work_stream=theirs.cuda_stream or None)
    spec = TensorSpec(t.data_ptr(), (N,), (1,), device=(abi.CUDA, 0), owner=t)
    producer = producer_type(table)(spec)
    torch.cuda.synchronize()
    with torch.cuda.stream(theirs):
        busy(t)
    with torch.cuda.stream(ours):
        with no_host_waits():
            total = bridge.from_dlpack(producer).to_torch().sum()
        assert total.item() == N


@both_wrappers
@pytest.mark.parametrize("by", ["dlpack", "interface", "managed"])
def test_the_consumers_stream_waits_for_ours(wrap: type, by: str) -> None:
    ours, theirs = torch.cuda.Stream(), torch.cuda.Stream()
    t = torch.zeros(N, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(ours), no_host_waits():
        x: Any = bridge.from_dlpack(t)
        if by == "managed":
            spec = TensorSpec(t.data_ptr(), (N,), (1,), device=(MANAGED, 0), owner=t)
            x = bridge.from_dlpack(Producer(spec))
        x = wrap(x)
        busy(t)
        if by == "interface":
            theirs.wait_stream(torch.cuda.ExternalStream(x.__cuda_array_interface__["stream"]))
        else:
            x.__dlpack__(stream=theirs.cuda_stream, max_version=(1, 3))
    with torch.cuda.stream(theirs):
        total = t.sum()
        assert total.item() == N


@both_wrappers
def test_the_work_stream_of_the_table_is_torchs(wrap: type) -> None:
    table = ExchangeTable(wrap)
    for device in range(torch.cuda.device_count()):
        side = torch.cuda.Stream(device)
        with torch.cuda.stream(side):
            assert table.work_stream((abi.CUDA, device)) == side.cuda_stream


def stays(x: at.Tensor) -> None:
    """Everything that needs no value on the host."""
    made = at.empty(N, device="cuda")
    made.copy_(x)
    made.clone().zero_()
    made[1:].fill_(2)
    made[::-1].clone()
    made[0] = 3
    made.add(x)
    x.view(2, -1).t().contiguous()
    x.to("float64").to("float32")
    at.full((4,), 0.5, device="cuda")
    at.zeros(4, device="cuda")
    caffe2.Tensor(made).Clone()
    made.to_torch(copy=True)
    torch.from_dlpack(made)
    at.Tensor(caffe2.Tensor(x))
    made.__cuda_array_interface__  # noqa: B018  read for what it does
    made.__dlpack__(stream=-1)
    ExchangeTable(at.Tensor).take(made).release()
    bridge.shares_memory(made, x)
    bridge.explain(made)
    made.set_(x)
    made.sizes(), made.device(), made.dtype(), made.data_ptr()


def test_nothing_that_stays_on_the_device_waits() -> None:
    x = bridge.from_dlpack(torch.ones(N, device="cuda"))
    stays(x)  # allocates, and loads what is loaded once
    torch.cuda.synchronize()
    with no_host_waits():
        stays(x)


@pytest.mark.usefixtures("fresh_workspace")
def test_a_workspace_waits_for_nothing() -> None:
    t = torch.ones(N, device="cuda")
    workspace.FeedBlob("x", t)
    torch.cuda.synchronize()
    with no_host_waits():
        workspace.FeedBlob("x", t)
        assert workspace.FetchTorch("x") is t
        workspace.FeedBlob("y", caffe2.Tensor(bridge.from_dlpack(t)))
        assert workspace.FetchTorch("y").data_ptr() == t.data_ptr()
        workspace.HasBlob("x")
        workspace.ResetWorkspace()


def test_copies_to_the_host_wait() -> None:
    t = torch.zeros(N, device="cuda")
    x = bridge.from_dlpack(t)
    count = counter()
    for read in (
        lambda: int(x.cpu().numpy().sum()),
        lambda: sum(map(int, x.tolist())),
        lambda: int(bridge.from_dlpack(x, device="cpu").numpy().sum()),
        lambda: int(at.Tensor(caffe2.Tensor(caffe2.Tensor(x), "cpu")).numpy().sum()),
        lambda: int(at.empty(N, c10.pinned_memory(True)).copy_(x).numpy().sum()),
    ):
        t.zero_()
        busy(t)
        before = 0 if count is None else count()
        assert read() == N
        assert count is None or count() > before


def test_host_memory_is_read_before_it_changes() -> None:
    host = at.ones(N)
    there = at.zeros(N, device="cuda")
    keep_busy()
    there.copy_(host)
    host.zero_()
    assert int(there.cpu().numpy().sum()) == N


@several
def test_copies_between_devices_are_ordered() -> None:
    for stream in (None, torch.cuda.Stream("cuda:0")):
        t = torch.zeros(N, device="cuda:0")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            busy(t)
            with no_host_waits():
                moved = bridge.from_dlpack(t, device="cuda:1")
                back = moved.cuda("cuda:0")
            t.zero_()
        torch.cuda.synchronize("cuda:0")
        assert int(moved.cpu().numpy().sum()) == N
        assert int(back.cpu().numpy().sum()) == N


@several
def test_each_device_has_its_own_current_stream() -> None:
    side = torch.cuda.Stream("cuda:1")
    t = torch.zeros(N, device="cuda:1")
    x = bridge.from_dlpack(t)
    torch.cuda.synchronize("cuda:1")
    with torch.cuda.stream(side), torch.cuda.device(0):
        busy_on = torch.cuda.current_stream("cuda:1")
        with torch.cuda.stream(busy_on):
            busy(t)
        assert x.__cuda_array_interface__["stream"] == side.cuda_stream
        x.__dlpack__(stream=1)
    assert torch.cuda.default_stream("cuda:1").query() in (True, False)
    with torch.cuda.stream(torch.cuda.default_stream("cuda:1")):
        assert int(t.sum().item()) == N


def test_the_host_waits_for_the_current_stream_where_a_framework_takes_none() -> None:
    t = torch.zeros(N, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        busy(t)
        synchronise_host(0)
        assert side.query()
