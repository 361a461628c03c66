# SPDX-License-Identifier: Apache-2.0
"""torch storages that change under their tensors: old values or an error, never freed memory.

Each test runs in a process of its own, since what it guards against is a crash.
"""

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from tests.helpers.dlpack_consumer import ExchangeTable, take
from tests.helpers.isolate import isolated

NUMEL = 1 << 16
CHANGED = (BufferError, RuntimeError)

# Every way to the data that does not end in the torch tensor itself.
ACCESSES: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda x: x.numpy().sum(),
    "asarray": lambda x: np.asarray(x).sum(),
    "to_numpy": lambda x: bridge.to_numpy(x).sum(),
    "memoryview": lambda x: memoryview(x).tobytes(),
    "item": lambda x: x[5].item(),
    "tolist": lambda x: x.tolist(),
    "clone": lambda x: x.clone(),
    "copy_": lambda x: at.empty(NUMEL).copy_(x),
    "fill_": lambda x: x.fill_(1),
    "zero_": lambda x: x.zero_(),
    "assignment": lambda x: x.__setitem__(0, 1.0),
    "equal": lambda x: x.equal(at.ones(NUMEL)),
    "contiguous view": lambda x: x.view(2, -1)[1].tolist(),
    "old slice": lambda x: x[3:].numpy().sum(),
    "torch operation": lambda x: x.add(1).sum().item(),
    "torch function": lambda x: torch.add(x, 1),
    "dlpack": lambda x: take(x).data(),
    "legacy dlpack": lambda x: take(x, max_version=None).data(),
    "table": lambda x: ExchangeTable(at.Tensor).take(x).data(),
    "borrowing table": lambda x: ExchangeTable(at.Tensor).borrow(x).data(),
    "caffe2 data": lambda x: caffe2.Tensor(x).data().sum(),
    "caffe2 mutable_data": lambda x: caffe2.Tensor(x).mutable_data("float32").fill(1),
    "caffe2 numpy": lambda x: caffe2.Tensor(x).numpy().sum(),
    "from_dlpack copy": lambda x: bridge.from_dlpack(x, copy=True),
    "cpu": lambda x: x.to("float64"),
}


def new_memory() -> torch.Tensor:
    """A tensor of ones, large enough for the allocator to give its pages back when it goes."""
    return torch.ones(NUMEL)


def to_nothing(t: torch.Tensor) -> None:
    t.untyped_storage().resize_(0)


def shrink(t: torch.Tensor) -> None:
    t.untyped_storage().resize_(64)


def grow(t: torch.Tensor) -> None:
    t.untyped_storage().resize_(64 * 4 * NUMEL)


def resize_tensor(t: torch.Tensor) -> None:
    t.resize_(64 * NUMEL)


CHANGES: dict[str, Callable[[torch.Tensor], None]] = {
    "storage to nothing": to_nothing,
    "storage shrunk": shrink,
    "storage grown": grow,
    "tensor grown": resize_tensor,
}


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("change", CHANGES)
@isolated
def test_a_storage_that_changed_after_import_is_an_error(change: str, access: str) -> None:
    t = new_memory()
    x = bridge.from_dlpack(t)
    CHANGES[change](t)
    gc.collect()
    # Memory that was freed is likely to be handed out again here.
    others = [torch.full((NUMEL,), 7.0) for _ in range(4)]
    with pytest.raises(CHANGED):
        ACCESSES[access](x)
    assert all((other == 7).all() for other in others), "somebody else's memory was written"


@pytest.mark.parametrize("change", CHANGES)
@isolated
def test_views_of_a_storage_that_changed_are_an_error(change: str) -> None:
    t = new_memory()
    x = bridge.from_dlpack(t)
    views = [x[5:], x.view(2, -1), bridge.from_dlpack(t[9:])]
    CHANGES[change](t)
    others = [torch.full((NUMEL,), 7.0) for _ in range(4)]
    for view in views:
        with pytest.raises(CHANGED):
            view.numpy().sum()
        with pytest.raises(CHANGED):
            view.fill_(3)
    assert all((other == 7).all() for other in others)


@pytest.mark.parametrize("access", ACCESSES)
@isolated
def test_a_storage_that_shrank_before_import_is_an_error(access: str) -> None:
    """Refused when it comes in, or at the latest when its data is wanted."""
    t = new_memory()
    shrink(t)
    with pytest.raises(CHANGED):
        ACCESSES[access](bridge.from_dlpack(t))


@pytest.mark.parametrize("copy", [None, True, False])
@isolated
def test_a_storage_without_bytes_is_refused(copy: bool | None) -> None:
    t = new_memory()
    to_nothing(t)
    with pytest.raises(BufferError):
        bridge.from_dlpack(t, copy=copy)


@isolated
def test_a_view_that_fits_into_a_shrunk_storage_is_read() -> None:
    t = torch.arange(100.0)
    t.untyped_storage().resize_(40)
    x = bridge.from_dlpack(t.as_strided((10,), (1,)))
    assert x.tolist() == list(range(10))
    empty = torch.empty(0)
    empty.untyped_storage().resize_(0)
    assert bridge.from_dlpack(empty).tolist() == []


@isolated
def test_a_tensor_that_torch_made_smaller_leaves_ours_as_it_was() -> None:
    """`resize_` to fewer elements keeps torch's memory: ours is still all there."""
    t = torch.arange(10.0)
    x = bridge.from_dlpack(t)
    t.resize_(4)
    assert tuple(x.sizes()) == (10,)
    assert x.tolist() == list(range(10))


def set_to_another(t: torch.Tensor) -> None:
    t.set_(torch.zeros(3))


def data_of_another(t: torch.Tensor) -> None:
    t.data = torch.zeros(3)


def set_to_nothing(t: torch.Tensor) -> None:
    t.set_()


def swap(t: torch.Tensor) -> None:
    torch.utils.swap_tensors(t, torch.zeros(3))


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("change", [set_to_another, data_of_another, set_to_nothing])
@isolated
def test_torch_moves_to_other_memory(change: Callable[[torch.Tensor], None], access: str) -> None:
    """The memory that came in is held, or known to be gone."""
    t = new_memory()
    x = bridge.from_dlpack(t)
    change(t)
    gc.collect()
    others = [torch.full((NUMEL,), 7.0) for _ in range(4)]
    try:
        ACCESSES[access](x)
    except CHANGED:
        pass
    else:
        assert set(x.tolist()) <= {0.0, 1.0}
    assert all((other == 7).all() for other in others)


@isolated
def test_a_swapped_tensor_gives_old_values_or_an_error() -> None:
    t = new_memory()
    x = bridge.from_dlpack(t)
    # torch refuses to swap what others hold weak references to.
    with contextlib.suppress(RuntimeError):
        swap(t)
    others = [torch.full((NUMEL,), 7.0) for _ in range(4)]
    try:
        values = set(x.tolist())
    except CHANGED:
        values = {1.0}
    assert values == {1.0}
    assert len(others) == 4


@isolated
def test_a_storage_moved_to_shared_memory_gives_old_values_or_an_error() -> None:
    """`share_memory_` moves the storage: the address that came in is no longer torch's."""
    t = new_memory()
    x = bridge.from_dlpack(t)
    t.share_memory_()
    others = [torch.full((NUMEL,), 7.0) for _ in range(4)]
    try:
        values = set(x.tolist())
    except CHANGED:
        values = {1.0}
    assert values == {1.0}
    assert len(others) == 4


@isolated
def test_memory_of_the_package_survives_a_resize_by_torch() -> None:
    """torch's own resize of a tensor that we handed out does not reach our memory."""
    x = at.ones(NUMEL)
    t = x.to_torch()
    for change in CHANGES.values():
        try:
            change(t)
        except RuntimeError:
            continue  # torch knows that the storage is not its own
    others = [torch.full((NUMEL,), 7.0) for _ in range(4)]
    assert set(x.tolist()) == {1.0}
    x.fill_(2)
    assert all((other == 7).all() for other in others)


@isolated
def test_an_error_says_that_the_storage_changed() -> None:
    x = bridge.from_dlpack(t := new_memory())
    to_nothing(t)
    with pytest.raises(CHANGED, match=r"(?i)storage|resize|shr[iu]nk|changed"):
        x.numpy()
