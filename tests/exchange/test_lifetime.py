# SPDX-License-Identifier: Apache-2.0
"""Owners are released exactly once, at the right time, in every order, from every thread."""

import functools
import gc
import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pickle import PickleBuffer
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from tests.helpers.dlpack_consumer import ExchangeTable, take
from tests.helpers.dlpack_producer import ManagedTensor, Producer, TensorSpec, stray_deletes
from tests.helpers.dlpack_table import Table, producer_type
from tests.helpers.isolate import isolated


def values() -> np.ndarray:
    return np.arange(6, dtype=np.float32)


class Interface:
    """An owner with only `__array_interface__`."""

    def __init__(self) -> None:
        self.array = values()
        self.__array_interface__ = self.array.__array_interface__


class Buffer(bytearray):
    """A bytearray that can be watched."""


def same_twice(owner: Any) -> tuple[Any, Any]:
    return owner, owner


def torch_of_numpy() -> tuple[Any, Any]:
    # torch lends the array's memory: when the array goes is when torch's storage has gone.
    array = values()
    return torch.from_numpy(array), array


# What comes in, and the owner of its memory, which the import alone is to keep.
OWNERS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "torch": torch_of_numpy,
    "numpy": lambda: same_twice(values()),
    "interface": lambda: same_twice(Interface()),
    "buffer": lambda: same_twice(Buffer(values().tobytes())),
}

# Ways out, each of which keeps the memory alive on its own.
EXPORTS: dict[str, Callable[[at.Tensor], Any]] = {
    "wrapper": lambda x: x,
    "view": lambda x: x[1:],
    "alias": lambda x: x.alias(),
    "shared impl": lambda x: at.Tensor(x),
    "caffe2": caffe2.Tensor,
    "numpy": lambda x: x.numpy(),
    "slice of numpy": lambda x: x.numpy()[2:],
    "torch": lambda x: x.to_torch(),
    "torch of a view": lambda x: x[1:3].to_torch(),
    "memoryview": memoryview,
    "capsule": lambda x: x.__dlpack__(max_version=(1, 3)),
    "legacy capsule": lambda x: x.__dlpack__(),
    "np.from_dlpack": np.from_dlpack,
    "torch.from_dlpack": torch.from_dlpack,
    "caffe2 data": lambda x: caffe2.Tensor(x).data(),
    "caffe2 mutable_data": lambda x: caffe2.Tensor(x).mutable_data(x.dtype()),
    "storage": lambda x: x.storage(),
}


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("owner", OWNERS)
def test_each_export_keeps_the_owner(owner: str, export: str) -> None:
    source, memory = OWNERS[owner]()
    alive = weakref.ref(memory)
    x = bridge.from_dlpack(source)
    del source, memory
    out = EXPORTS[export](x)
    del x
    gc.collect()
    assert alive() is not None
    del out
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("versioned", [True, False])
def test_each_export_keeps_the_deleter(versioned: bool, export: str) -> None:
    managed = ManagedTensor(TensorSpec.of_array(values()), versioned=versioned)
    x = bridge.from_dlpack(managed.capsule())
    out = EXPORTS[export](x)
    del x
    gc.collect()
    assert managed.deleted == 0
    del out
    gc.collect()
    assert managed.deleted == 1
    assert stray_deletes == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_an_owner_is_released_after_its_last_holder_in_every_order(order: tuple[int, ...]) -> None:
    managed = ManagedTensor(TensorSpec.of_array(values()), versioned=True)
    x = bridge.from_dlpack(managed.capsule())
    holders = [x, x[1:].to_torch(), x.numpy(), take(x)]
    del x
    for position, which in enumerate(order):
        assert managed.deleted == 0
        holder, holders[which] = holders[which], None
        if which == 3:
            assert holder.data() == values().tobytes()
            holder.release()
        del holder
        gc.collect()
        assert managed.deleted == (position == 3)


def test_references_go_at_once() -> None:
    """No cycle of ours: nothing waits for the garbage collector."""
    gc.disable()
    try:
        for make in OWNERS.values():
            source, memory = make()
            alive = weakref.ref(memory)
            x = bridge.from_dlpack(source)
            view = caffe2.Tensor(x[0:2])
            del source, memory, x
            assert alive() is not None
            del view
            assert alive() is None
    finally:
        gc.enable()


def test_an_import_takes_one_reference() -> None:
    for make in OWNERS.values():
        source, _ = make()
        before = sys.getrefcount(source)
        x = bridge.from_dlpack(source)
        assert sys.getrefcount(source) > before
        views = [x[1:], x.alias(), caffe2.Tensor(x), x.numpy()]
        del x, views
        gc.collect()
        assert sys.getrefcount(source) == before


def test_a_failed_import_takes_none() -> None:
    source = np.arange(6, dtype=np.float32)[::-1]
    odd = np.zeros(3, object)
    grad = torch.ones(3, requires_grad=True)
    for owner, call in (
        (odd, bridge.from_dlpack),
        (grad, bridge.from_dlpack),
        (source, lambda a: bridge.to_torch(a, copy=False)),
        (source, lambda a: bridge.convert(a, "nowhere")),
    ):
        before = sys.getrefcount(owner)
        for _ in range(10):
            with pytest.raises((BufferError, ValueError)):
                call(owner)
        gc.collect()
        assert sys.getrefcount(owner) == before


def test_the_table_releases_the_owner_once() -> None:
    producer = producer_type(Table())(TensorSpec.of_array(values()))
    x = bridge.from_dlpack(producer)
    taken = ExchangeTable(at.Tensor).take(x)
    del x
    assert producer.deletions == [0]
    taken.release()
    assert producer.deletions == [1]


def test_the_producer_may_go_first() -> None:
    producer = Producer(TensorSpec.of_array(values()))
    x = bridge.from_dlpack(producer)
    (managed,) = producer.made
    alive = weakref.ref(producer)
    del producer
    gc.collect()
    assert alive() is None, "the struct is the owner, not the object that made it"
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    del x
    assert managed.deleted == 1


@isolated
def test_cycles_through_an_attribute_of_torch_are_collected() -> None:
    """A torch tensor that holds the bridge tensor made from it: a cycle, and collected."""
    for wrap in (at.Tensor, caffe2.Tensor):
        t = torch.arange(6.0)
        alive = weakref.ref(t)
        t.partner = wrap(bridge.from_dlpack(t))  # type: ignore[attr-defined]
        assert t.partner.to_torch() is t  # type: ignore[attr-defined]
        del t
        gc.collect()
        assert alive() is None


@isolated
def test_cycles_that_live_are_left_alone() -> None:
    t = torch.arange(6.0)
    t.partner = bridge.from_dlpack(t)  # type: ignore[attr-defined]
    out = t.partner.numpy()  # type: ignore[attr-defined]
    del t
    gc.collect()
    others = [torch.full((6,), 7.0) for _ in range(16)]
    assert out.tolist() == [0, 1, 2, 3, 4, 5]
    assert len(others) == 16


class Offers:
    """An owner whose memory is that of another tensor, by one of its doors."""

    def __init__(self, x: at.Tensor) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.x)


# Ways out of a tensor and back, each of which may keep the tensor that it began with.
ROUND_TRIPS: dict[str, Callable[[at.Tensor], Any]] = {
    "memoryview": memoryview,
    "array of a memoryview": lambda x: np.asarray(memoryview(x)),
    "numpy.asarray": np.asarray,
    "numpy.frombuffer": lambda x: np.frombuffer(x, dtype="f4"),
    "numpy": bridge.to_numpy,
    "an object with __array__": Offers,
    "pickle's buffer": PickleBuffer,
    "torch": lambda x: bridge.to_torch(x).detach(),
    "torch.frombuffer": lambda x: torch.frombuffer(x, dtype=torch.float32),
    "capsule": lambda x: x.__dlpack__(),
    "part": lambda x: x[:],
}


@pytest.mark.parametrize("way", ROUND_TRIPS)
@isolated
def test_a_long_chain_of_views_is_freed_without_overflowing_the_stack(way: str) -> None:
    x = at.ones(3)
    for _ in range(100_000):
        x = bridge.from_dlpack(ROUND_TRIPS[way](x))
    assert x.tolist() == [1, 1, 1]
    del x
    gc.collect()


def in_threads(*works: Callable[[], Any]) -> None:
    """Run each in a thread of its own, and raise what any of them raised."""
    with ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


@pytest.mark.parametrize("owner", OWNERS)
def test_another_thread_releases_the_owner(owner: str) -> None:
    source, memory = OWNERS[owner]()
    alive = weakref.ref(memory)
    holders = [bridge.from_dlpack(source)]
    del source, memory
    in_threads(holders.clear)
    gc.collect()
    assert alive() is None


@isolated
def test_a_thread_without_the_gil_releases_the_owner() -> None:
    """torch frees what its autograd threads held without asking for the GIL first."""
    managed = ManagedTensor(TensorSpec.of_array(values()), versioned=True)
    t = bridge.from_dlpack(managed.capsule()).to_torch()
    leaf = torch.ones(6, requires_grad=True)
    loss = (leaf * t).sum()
    del t
    in_threads(loss.backward)
    assert leaf.grad is not None
    assert leaf.grad.tolist() == values().tolist()
    assert managed.deleted in (0, 1)
    del loss
    gc.collect()
    assert managed.deleted == 1


@isolated
def test_many_threads_at_once_leave_the_counts_as_they_were() -> None:
    t, array = torch.arange(64.0), np.arange(64.0)
    counts = [sys.getrefcount(t), sys.getrefcount(array)]
    producers = [Producer(TensorSpec.of_array(values())) for _ in range(4)]
    barrier = threading.Barrier(4)

    def work(producer: Producer) -> None:
        barrier.wait()
        for _ in range(300):
            x, y = bridge.from_dlpack(t), bridge.from_dlpack(array)
            assert x[5:].numpy()[0] == y[5].item() == 5.0
            assert bridge.from_dlpack(producer)[1:].to_torch()[0] == 1.0
            assert bridge.from_dlpack(caffe2.Tensor(y).__dlpack__()).numel() == 64

    in_threads(*(functools.partial(work, producer) for producer in producers))
    gc.collect()
    assert [sys.getrefcount(t), sys.getrefcount(array)] == counts
    for producer in producers:
        assert producer.deletions == [1] * 300


@isolated
def test_threads_that_share_one_tensor_leave_its_count_as_it_was() -> None:
    """Wrappers of one impl made and dropped in four threads: the count comes back to one."""
    x = bridge.from_dlpack(torch.arange(64.0))
    before = x.storage().use_count()

    def work() -> None:
        for _ in range(500):
            assert caffe2.Tensor(x).numel() == 64
            assert x[1:].storage().use_count() >= 1
            assert x.alias().numpy()[3] == 3.0

    in_threads(work, work, work, work)
    gc.collect()
    assert x.storage().use_count() == before
