# SPDX-License-Identifier: Apache-2.0
"""Python that the core calls in the middle of its work, and that changes what is worked on.

Allocators, constructors and copies of elements, and weak references are such. Each test runs in a
process of its own, since what it guards against is a crash.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from bridge import at, c10, caffe2
from tests.helpers.isolate import isolated

from .host_allocators import HostAllocator


class Meddler(HostAllocator):
    """Calls `meddle`, once, before it gives memory."""

    meddle: Callable[[], object] | None = None
    overrun = False

    def raw_allocate(self, nbytes: int) -> int:
        meddle, self.meddle = self.meddle, None
        if meddle is not None:
            meddle()
        return super().raw_allocate(nbytes)

    def raw_deallocate(self, address: int) -> None:
        buffer = self._buffers[address]
        end = address - ctypes.addressof(buffer) + self.live[address]
        self.overrun |= any(buffer.raw[end:])
        super().raw_deallocate(address)


class Element:
    """An element type whose making and copying call `meddle`, once."""

    meddle: Callable[[], object] | None = None

    def __init__(self) -> None:
        meddle, Element.meddle = Element.meddle, None
        if meddle is not None:
            meddle()

    def __deepcopy__(self, memo: Any) -> Element:
        return Element()


def from_outside(*sizes: int) -> caffe2.Tensor:
    """A tensor that no allocator was asked for."""
    return caffe2.Tensor(at.from_blob(bytearray(4000), sizes))


def of_elements(n: int) -> caffe2.Tensor:
    return caffe2.empty((n,), c10.TypeMeta.Register(Element))


@pytest.mark.parametrize("wrapper", [True, False], ids=["wrapper", "impl"])
@isolated
def test_weak_reference_callbacks_may_free_the_next_tensor_in_a_chain(wrapper: bool) -> None:
    """More of them end inside each other than the core keeps dead ones for reuse."""
    chain = [at.empty(2, 3) for _ in range(300)]

    def end_the_next(ref: object) -> None:
        if chain:
            chain.pop()

    refs = [
        weakref.ref(one if wrapper else one.unsafeGetTensorImpl(), end_the_next) for one in chain
    ]
    chain.pop()
    assert not chain
    assert all(ref() is None for ref in refs)
    new = [at.full((2, 3), float(i)) for i in range(1000)]
    assert [one.tolist()[1][2] for one in new] == list(range(1000))
    assert len({id(one.unsafeGetTensorImpl()) for one in new}) == 1000


RESIZES: dict[str, Callable[[caffe2.Tensor], object]] = {
    "more elements": lambda tensor: tensor.Resize(50, 60),
    "more dimensions": lambda tensor: tensor.Resize(*(1,) * 40, 7),
    "none": lambda tensor: tensor.Resize(0),
    "freed": lambda tensor: tensor.FreeMemory(),
    "another type": lambda tensor: (tensor.Resize(2, 3), tensor.mutable_data("int8")),
    "larger elements": lambda tensor: tensor.mutable_data("float64"),
    "reset": lambda tensor: tensor.storage().reset(),
    "shared": lambda tensor: tensor.Alias().mutable_data("complex128"),
}
USES: dict[str, Callable[[caffe2.Tensor], object]] = {
    "Clone": lambda tensor: tensor.Clone(),
    "CopyFrom": lambda tensor: caffe2.Tensor("cpu").CopyFrom(tensor),
    "CopyFrom to it": lambda tensor: tensor.CopyFrom(from_outside(9, 9, 9)),
    "Extend": lambda tensor: tensor.Extend(100),
    "ReserveSpace": lambda tensor: tensor.ReserveSpace(100),
    "mutable_data": lambda tensor: tensor.mutable_data("complex128"),
    "clone": lambda tensor: at.Tensor(tensor).clone(),
    "clone of a view": lambda tensor: at.Tensor(tensor).transpose(0, 2).clone(),
    "empty_like": lambda tensor: at.empty_like(at.Tensor(tensor)),
    "to": lambda tensor: at.Tensor(tensor).to("float64"),
    "resize_": lambda tensor: at.Tensor(tensor).resize_(20, 20),
}


@pytest.mark.parametrize("resize", RESIZES)
@pytest.mark.parametrize("use", USES)
@isolated
def test_an_allocator_may_resize_the_tensor_it_allocates_for(use: str, resize: str) -> None:
    allocator = Meddler()
    c10.SetAllocator("cpu", allocator)
    tensor = caffe2.empty((5, 6, 7), "float32")
    tensor.mutable_data("float32")[:] = 1
    allocator.meddle = functools.partial(RESIZES[resize], tensor)
    # Either torch or the bridge says that the tensor changed, or what came of it is sound.
    with contextlib.suppress(RuntimeError):
        USES[use](tensor)
    assert allocator.meddle is None
    assert tensor.numel() == at.empty(tuple(tensor.sizes()), "int8").numel()
    tensor.Resize(tensor.capacity_nbytes() // 4)
    tensor.mutable_data("float32")[:] = 2
    assert tensor.data().tolist() == [2] * tensor.numel()
    del tensor
    gc.collect()
    assert not allocator.live
    assert not allocator.overrun
    assert allocator.stats.allocated_bytes == 0


@isolated
def test_copying_an_element_that_changes_the_target_is_refused() -> None:
    tensor, source = of_elements(3), of_elements(3)

    def change() -> None:
        tensor.FreeMemory()
        tensor.Resize(100)
        tensor.mutable_data("float32")[:] = 5

    Element.meddle = staticmethod(change)
    with pytest.raises(c10.EnforceNotMet, match="replaced the memory"):
        tensor.CopyFrom(source)
    assert tensor.data("float32").tolist() == [5] * 100


def test_an_element_that_cannot_be_copied_leaves_the_tensor_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tensor, source = of_elements(3), of_elements(2)
    before = list(tensor.data())

    def fail(self: Element, memo: Any) -> Element:
        raise OSError("not this one")

    monkeypatch.setattr(Element, "__deepcopy__", fail)
    for copy in (lambda: tensor.CopyFrom(source), source.Clone, source.Alias().Clone):
        with pytest.raises(OSError, match="not this one"):
            copy()
    assert tensor.sizes() == (3,)
    assert [a is b for a, b in zip(tensor.data(), before, strict=True)] == [True] * 3
    assert tensor.storage().unique()


@isolated
def test_extending_a_tensor_that_its_new_element_changes_is_refused() -> None:
    tensor = of_elements(3)
    Element.meddle = staticmethod(lambda: tensor.mutable_data("float32"))
    with pytest.raises(c10.EnforceNotMet):
        tensor.Extend(5)
    assert tensor.sizes() == (3,)
    assert len(tensor.mutable_data("float32")) == 3


@isolated
def test_another_thread_may_resize_a_tensor_while_it_is_copied() -> None:
    """The elements are copied without the GIL, by the sizes and strides from before."""
    view = at.full((40, 50, 60, 70), 3.0).permute(3, 1, 0, 2)
    other = at.full((1,) * 9, 1.0)
    copies: list[at.Tensor] = []
    begun = threading.Event()

    def copy() -> None:
        begun.set()
        copies.append(view.contiguous())

    thread = threading.Thread(target=copy)
    thread.start()
    begun.wait()
    time.sleep(0.01)
    view.set_(other)
    reusing = [other.view(1, 1, 1, 1) for _ in range(100)]  # where its sizes were
    thread.join()
    assert len(reusing) == 100
    assert copies[0].sizes() in ((70, 50, 40, 60), (1,) * 9)
    assert len(set(copies[0].numpy().reshape(-1).tolist())) == 1
