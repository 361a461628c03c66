# SPDX-License-Identifier: Apache-2.0
"""Eight threads that do random things to shared objects: no crash, no torn value, nothing lost.

``python -m tests.helpers.stress SECONDS`` runs all scenarios, in turn, as long as that;
`tests/test_threads.py` runs each for a fixed number of steps. A step may raise what the bridge
raises where another thread was faster, and nothing else.
"""

from __future__ import annotations

import faulthandler
import gc
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import core, workspace

THREADS = 8
Step = Callable[[random.Random], object]

# What a call may raise because of what another thread has done.
EXPECTED = (c10.EnforceNotMet, BufferError)


def run(steps: Sequence[Step], each: int, seed: int, threads: int = THREADS) -> None:
    """Let each thread take `each` random steps; raise the first error that is not expected."""
    errors: list[BaseException] = []
    start = threading.Barrier(threads)

    def work(number: int) -> None:
        chosen = random.Random(seed * 1000 + number)
        start.wait()
        try:
            for _ in range(each):
                try:
                    chosen.choice(steps)(chosen)
                except EXPECTED:
                    continue
                if errors:
                    return
        except BaseException as error:  # noqa: BLE001 - raised by the main thread
            errors.append(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]


def tensors() -> list[Step]:
    """Reads, exports and changes of the same tensors and of aliases that share their storages."""
    shared = [caffe2.Tensor((4,), "cpu") for _ in range(3)]
    for one in shared:
        one.mutable_data("float32")[:] = 1
    shared += [one.Alias() for one in shared]
    wrappers = [at.Tensor(one) for one in shared[:3]]

    def any_of(chosen: random.Random) -> caffe2.Tensor:
        return chosen.choice(shared)

    def whole(tensor: caffe2.Tensor) -> None:
        sizes = tensor.sizes()
        assert all(size >= 0 for size in sizes), sizes
        assert len(tensor.shape) <= 20 and len(tensor.strides()) <= 20

    def look(tensor: caffe2.Tensor) -> None:
        np.count_nonzero(tensor.data())

    def exported(tensor: caffe2.Tensor) -> None:
        tensor.to_torch().count_nonzero()
        np.from_dlpack(tensor)
        memoryview(tensor).tobytes()

    return [
        lambda r: whole(any_of(r)),
        lambda r: look(any_of(r)),
        lambda r: exported(any_of(r)),
        lambda r: any_of(r).numpy().copy(),
        lambda r: any_of(r).Clone().data(),
        lambda r: (any_of(r).storage().nbytes(), any_of(r).device, any_of(r).dtype),
        lambda r: repr(r.choice(wrappers).sizes()),
        lambda r: r.choice(wrappers).view(-1)[1:].count_nonzero(),
        lambda r: r.choice(wrappers).clone().tolist(),
        lambda r: (any_of(r).defined(), any_of(r).storage_initialized(), repr(any_of(r))),
        lambda r: (r.choice(wrappers).is_contiguous(), repr(r.choice(wrappers))),
        lambda r: r.choice(wrappers).to("float64").tolist(),
        lambda r: r.choice(wrappers)[0].fill_(1),
        lambda r: r.choice(wrappers).copy_(r.choice(wrappers)),
        lambda r: at.zeros_like(r.choice(wrappers)),
        lambda r: pickle.loads(pickle.dumps(any_of(r))),
        lambda r: bridge.from_dlpack(any_of(r)),
        lambda r: any_of(r).Resize(r.choice([1, 2, 4, 2000])),
        lambda r: any_of(r).Resize(*[1] * r.choice([1, 3, 5, 20])),
        lambda r: any_of(r).mutable_data(r.choice(["float32", "float32", "float64", "int8"])),
        lambda r: any_of(r).Extend(r.choice([1, 100])),
        lambda r: any_of(r).FreeMemory(),
        lambda r: any_of(r).CopyFrom(any_of(r)),
        lambda r: any_of(r).ShareData(any_of(r)),
        lambda r: any_of(r).storage().reset(),
        lambda r: any_of(r).Reshape(1, any_of(r).numel()),
    ]


def conversions() -> list[Step]:
    """The same foreign tensors into and out of the bridge."""
    foreign = [torch.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3), bytearray(48)]
    own = [at.zeros(2, 3), at.zeros(3), caffe2.empty([6], "float64")]

    def back(source: object) -> None:
        tensor = bridge.from_dlpack(source)
        assert bridge.shares_memory(tensor, tensor.to_torch())
        assert tensor.numel() in (6, 48)

    capsules = [own[0].__dlpack__()]
    taken: set[int] = set()
    keep: list[object] = []  # so that their numbers stay their own

    def taken_once() -> None:
        capsule = capsules[0]
        try:
            bridge.from_dlpack(capsule)
        except BufferError:
            return  # by another thread
        keep.append(capsule)
        known = len(taken)
        assert id(capsule) not in taken, known
        taken.add(id(capsule))
        capsules[0] = own[0].__dlpack__()

    return [
        *[lambda r: taken_once()] * 3,
        lambda r: back(r.choice(foreign)),
        lambda r: r.choice(own).to_torch(),
        lambda r: r.choice(own).numpy(),
        lambda r: at.Tensor(caffe2.Tensor(r.choice(own[:2]))),
        lambda r: torch.from_dlpack(r.choice(own)),
        lambda r: bridge.convert(r.choice(foreign), r.choice(["numpy", "torch", "at", "caffe2"])),
        lambda r: c10.TypeMeta.Make(r.choice(["float32", np.int8, torch.float64, float])),
        lambda r: c10.Device(r.choice(["cpu", "cuda:1", "cuda:0"])),
        lambda r: bridge.asarray(r.choice(foreign), dtype="float32"),
    ]


def blobs() -> list[Step]:
    """Feeds and fetches of a few names, while workspaces are switched and reset."""
    workspace.ResetWorkspace()
    names = "abcd"
    values = [
        np.full(3, 7, np.float32),
        np.full((2, 2), 8, np.float32),
        np.full(20_000, 9, np.float32),
        torch.full((3,), 7.0),
        "text",
    ]
    lent = at.full([3], 6.0, "float32")  # which no feed may write

    def fetched(name: str) -> None:
        found = workspace.FetchBlob(name)
        assert isinstance(found, bytes) or len({*found.ravel().tolist()}) <= 2

    def kept() -> None:
        assert lent.tolist() == [6, 6, 6], lent

    def shared(name: str) -> None:
        assert workspace.FetchTorch(name).numel() in (3, 4, 20_000)

    def copied(name: str, other: str) -> None:
        workspace.DeserializeBlob(other, workspace.SerializeBlob(name))

    def switched(name: str) -> None:
        with workspace.WorkspaceGuard(name):
            workspace.Blobs()

    return [
        *[lambda r: workspace.FeedBlob(r.choice(names), r.choice(values))] * 4,
        lambda r: workspace.FeedBlob(r.choice(names), lent),
        lambda r: kept(),
        *[lambda r: fetched(r.choice(names))] * 4,
        *[lambda r: shared(r.choice(names))] * 2,
        lambda r: workspace.HasBlob(r.choice(names)),
        lambda r: workspace.Blobs(),
        lambda r: workspace.Workspace.current.remove_blob(r.choice(names)),
        lambda r: workspace.ResetBlob(r.choice(names)),
        lambda r: copied(r.choice(names), r.choice(names)),
        lambda r: switched(r.choice(["default", "other"])),
        lambda r: workspace.ResetWorkspace() if r.random() < 0.1 else None,
    ]


def operators() -> list[Step]:
    """One operator, and one net, run by all threads on the same blobs and on their own."""
    workspace.ResetWorkspace()
    for name in ("x", "y"):
        workspace.FeedBlob(name, np.array([-1, 2, 3], np.float32))
    net = core.Net("of_all")
    net.Relu("x", "u")
    net.Add(["u", "y"], "v")
    net.Softmax("v", "w", axis=0)
    net.Sum(["v", "w", "y"], "z")
    workspace.CreateNet(net, overwrite=True)
    once = [
        core.CreateOperator("Relu", "x", "r"),
        core.CreateOperator("Add", ["x", "y"], "s"),
        core.CreateOperator("Scale", "x", "t", scale=2.0),
        core.CreateOperator("Reshape", "x", ["p", "old"], shape=[3, 1]),
        core.CreateOperator("Concat", ["x", "y"], ["c", "split"], axis=0),
    ]
    values = [np.array([-1, 2, 3], np.float32), np.array([-1, 2], np.float32)]

    return [
        *[lambda r: workspace.RunOperatorOnce(r.choice(once))] * 3,
        *[lambda r: workspace.RunNet("of_all")] * 3,
        lambda r: workspace.RunNetOnce(net),
        lambda r: workspace.FetchBlob(r.choice("urstzpc")),
        lambda r: workspace.FeedBlob(r.choice("xy"), values[r.random() < 0.05]),
        lambda r: workspace.FeedBlob(r.choice("xy"), torch.ones(3)),
    ]


def registries() -> list[Step]:
    """Classes, adapters, allocators and operators are registered while all are used."""

    class Counting(c10.Allocator):
        def raw_allocate(self, nbytes: int) -> int:
            return super().raw_allocate(nbytes)

    before = c10.GetAllocator("cpu")
    allocators = [before, c10.Allocator(), Counting()]

    class Holder:
        def __init__(self, value: object) -> None:
            self.value = value

    def register_library(name: str) -> None:
        bridge.register(name, types=[Holder], importer=lambda x: x.value, exporter=Holder)

    register_library("held")

    def element_type() -> None:
        cls = type("Element", (), {})
        assert c10.TypeMeta.Register(cls) is c10.TypeMeta.Make(cls)

    def watched() -> None:
        with bridge.audit() as log:
            bridge.from_dlpack(torch.ones(2)).to_torch()
        assert len(log.records) == 2, log

    def refused() -> None:
        with bridge.no_copy():
            try:
                bridge.from_dlpack(np.ones(2, ">f4"))
            except BufferError:
                return
        raise AssertionError("a copy was made")

    def allocated(n: int) -> None:
        tensor = at.zeros(n)
        assert tensor.sum().item() == 0
        allocator = c10.GetAllocator("cpu")
        held = allocator.allocate(n)
        assert held.nbytes == n

    return [
        lambda r: c10.SetAllocator("cpu", r.choice(allocators)),
        lambda r: allocated(r.choice([1, 100, 5000])),
        lambda r: caffe2.empty([r.choice([1, 100])], "float32").mutable_data()[:].fill(1),
        lambda r: register_library(r.choice(["held", "kept"])) if r.random() < 0.05 else None,
        lambda r: bridge.from_dlpack(Holder(torch.ones(2))),
        lambda r: element_type() if r.random() < 0.05 else None,
        lambda r: watched(),
        lambda r: refused(),
        lambda r: gc.collect() if r.random() < 0.01 else None,
        lambda r: c10.SetAllocator("cpu", before) if r.random() < 0.5 else None,
    ]


SCENARIOS: dict[str, Callable[[], list[Step]]] = {
    "tensors": tensors,
    "conversions": conversions,
    "blobs": blobs,
    "operators": operators,
    "registries": registries,
}


def main(seconds: float, names: Sequence[str]) -> None:
    """Run the scenarios by turns until the time is over."""
    faulthandler.enable()
    faulthandler.dump_traceback_later(seconds + 300, exit=True)  # a deadlock
    end = time.monotonic() + seconds
    allocator = c10.GetAllocator("cpu")
    turn = 0
    while time.monotonic() < end:
        for name in names:
            run(SCENARIOS[name](), 300, turn)
            c10.SetAllocator("cpu", allocator)
        turn += 1
    is_enabled = getattr(sys, "_is_gil_enabled", lambda: True)
    print(f"{turn} turns of {', '.join(names)}, {THREADS} threads, GIL {is_enabled()}: no fault")


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:] or list(SCENARIOS))
