# SPDX-License-Identifier: Apache-2.0
"""Eight threads that convert shared tensors all ways at once: every result is right."""

import gc
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from tests.helpers.dlpack_producer import ManagedTensor, TensorSpec, outstanding, stray_deletes
from tests.helpers.isolate import isolated
from tests.helpers.routes import OPTIONAL, is_here, names_of

THREADS = 8
ROUNDS = 1500
VALUES = np.arange(64, dtype=np.float32)
SUM = VALUES.sum()


class Shared:
    """What all threads look at, and never write."""

    def __init__(self) -> None:
        self.array = VALUES.copy()
        self.tensor = torch.from_numpy(VALUES.copy())
        self.ours = bridge.from_dlpack(VALUES.copy())
        self.flat = caffe2.Tensor(self.ours)
        self.bytes = VALUES.tobytes()
        self.message = bridge.tf.make_tensor_proto(VALUES)
        workspace.FeedBlob("shared", self.tensor)
        workspace.FeedBlob("copied", self.array)


def new_capsule() -> Any:
    return ManagedTensor(TensorSpec.of_array(VALUES), versioned=True).capsule()


def moved(s: Shared) -> Any:
    """A producer's memory through both wrappers and out, the last holder an array."""
    return caffe2.Tensor(bridge.from_dlpack(new_capsule())).data()


def resized(s: Shared) -> Any:
    x = caffe2.Tensor([64], "cpu")
    x.mutable_data("float32")[:] = s.array
    x.Extend(64)
    x.ShrinkTo(64)
    return x.data()


def fed(s: Shared) -> Any:
    name = f"of {threading.get_ident()}"
    workspace.FeedBlob(name, s.array)
    return workspace.FetchBlob(name)


# Each gives an array of VALUES, or what NumPy makes one of.
WORKS: dict[str, Callable[[Shared], Any]] = {
    "torch in": lambda s: bridge.from_dlpack(s.tensor).numpy(),
    "numpy in": lambda s: bridge.from_dlpack(s.array).numpy(),
    "bytes in": lambda s: bridge.from_dlpack(s.bytes).view("float32").numpy(),
    "torch out": lambda s: s.ours.to_torch().numpy(),
    "torch of numpy": lambda s: bridge.to_torch(s.array).numpy(),
    "view": lambda s: s.ours.view(8, 8).transpose(0, 1).contiguous().t().reshape(64).numpy(),
    "clone": lambda s: s.ours.clone().numpy(),
    "caffe2": lambda s: caffe2.Tensor(at.Tensor(s.flat)).data(),
    "alias": lambda s: s.flat.Alias().data(),
    "capsule": lambda s: bridge.from_dlpack(s.ours.__dlpack__(max_version=(1, 3))).numpy(),
    "legacy capsule": lambda s: bridge.from_dlpack(s.ours.__dlpack__()).numpy(),
    "new capsule": moved,
    "np.from_dlpack": lambda s: np.from_dlpack(s.ours),
    "memoryview": lambda s: np.asarray(memoryview(s.ours)),
    "operation": lambda s: s.ours.add(1).sub(1).numpy(),
    "converted": lambda s: s.ours.to("float64").to("float32").numpy(),
    "resized": resized,
    "fed": fed,
    "fetched": lambda s: workspace.FetchBlob("copied"),
    "fetched from torch": lambda s: workspace.FetchTorch("shared").numpy(),
    "message": lambda s: bridge.tf.from_tensor_proto(s.message).numpy(),
    "made message": lambda s: bridge.tf.from_tensor_proto(
        bridge.tf.make_tensor_proto(s.ours)
    ).numpy(),
}


def run_threads(work: Callable[[int], None], n: int = THREADS) -> None:
    """Run `work(index)` in `n` threads that start together, and raise what any of them raised."""
    barrier = threading.Barrier(n)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            barrier.wait()
            work(index)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@isolated
def test_mixed_conversions_of_shared_tensors_give_right_values() -> None:
    shared = Shared()
    counted = (shared.array, shared.tensor, shared.ours, shared.flat, shared.bytes)
    for work in WORKS.values():  # what is kept for the next time, is kept now
        work(shared)
    gc.collect()
    before = [sys.getrefcount(one) for one in counted], shared.ours.storage().use_count()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # the threads change places in the middle of everything

    def work(index: int) -> None:
        dice = random.Random(index)
        kept: list[Any] = []
        for _ in range(ROUNDS):
            name = dice.choice(list(WORKS))
            seen = WORKS[name](shared)
            assert np.asarray(seen).sum() == SUM, name
            kept.append(seen)
            if len(kept) > 20:
                del kept[dice.randrange(len(kept))]
        assert all(np.array_equal(one, VALUES) for one in kept)

    run_threads(work)
    sys.setswitchinterval(interval)
    for thread_blob in workspace.Blobs():
        if thread_blob.startswith("of "):
            workspace.ResetBlob(thread_blob)
    gc.collect()
    assert ([sys.getrefcount(one) for one in counted], shared.ours.storage().use_count()) == before
    assert outstanding() == 0
    assert stray_deletes == []
    for one in (shared.array, shared.ours.numpy(), shared.tensor.numpy()):
        np.testing.assert_array_equal(one, VALUES)


@isolated
def test_owners_are_dropped_by_whoever_is_last() -> None:
    """Each thread drops its share of many holders of the same memory, in an order of its own."""
    made = [ManagedTensor(TensorSpec.of_array(VALUES), versioned=bool(i % 2)) for i in range(60)]
    holders: list[list[Any]] = [[] for _ in range(THREADS)]
    for managed in made:
        x = bridge.from_dlpack(managed.capsule())
        looks = [x, x[1:], caffe2.Tensor(x), x.numpy(), x.to_torch(), memoryview(x), x.alias()]
        looks.append(x.__dlpack__(max_version=(1, 3)))
        for mine, look in zip(holders, looks, strict=True):
            mine.append(look)
        del x, looks, look, mine
    assert outstanding() == len(made)

    def work(index: int) -> None:
        random.Random(index).shuffle(holders[index])
        while holders[index]:
            holders[index].pop()

    run_threads(work)
    gc.collect()
    assert [managed.deleted for managed in made] == [1] * len(made)
    assert stray_deletes == []


@isolated
def test_allocator_counts_right_under_threads() -> None:
    stats = c10.GetAllocator("cpu").stats
    gc.collect()
    before = stats.allocated_bytes

    def work(index: int) -> None:
        for i in range(ROUNDS):
            x = at.empty(16 + i % 64)
            assert x.fill_(index)[3].item() == index
            y = caffe2.Tensor([i % 7 + 1, 8], "cpu")
            y.mutable_data("float32")[:] = index
            assert (y.data() == index).all()

    run_threads(work)
    gc.collect()
    assert stats.allocated_bytes == before


@pytest.mark.parametrize("framework", OPTIONAL)
@isolated
def test_conversions_of_one_tensor_to_a_framework_are_right_in_threads(framework: str) -> None:
    if not is_here(framework):
        pytest.skip(f"{framework} is not installed")
    names = names_of(framework, (4, 16))
    theirs = next(names[one] for one in ("f", "j", "e", "arrow_tensor") if one in names)
    source = bridge.from_dlpack(VALUES.reshape(4, 16).copy())
    to = {
        "jax": lambda: bridge.to_jax(source),
        "tensorflow": lambda: bridge.to_tensorflow(source),
        "tvm_ffi": lambda: names["tvm_ffi"].from_dlpack(source),
        "pyarrow": lambda: bridge.to_torch(source),
    }[framework]
    to()

    def work(index: int) -> None:
        for _ in range(300):
            assert bridge.from_dlpack(theirs).numpy().sum() == 0
            out = to()
            assert bridge.to_numpy(out).sum() == SUM

    run_threads(work)
    before = source.storage().use_count()
    gc.collect()
    assert source.storage().use_count() <= before
    assert source.sum().item() == SUM
