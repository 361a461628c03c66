# SPDX-License-Identifier: Apache-2.0
"""To torch, every tensor of a Storage is a view of one torch storage."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2


def same_torch_storage(a, b) -> bool:
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def owned():
    return at.arange(12.0).reshape(3, 4)


def of_torch():
    return bridge.from_dlpack(torch.arange(12.0).reshape(3, 4))


def a_view_of_torch():
    return bridge.from_dlpack(torch.arange(20.0)[5:17].reshape(3, 4))


def of_numpy():
    return bridge.from_dlpack(np.arange(12.0, dtype=np.float32).reshape(3, 4))


def retained():
    x = a_view_of_torch()
    x.numpy()
    return x


def of_caffe2():
    t = caffe2.Tensor([5, 4], "cpu")
    t.mutable_data("float32")[:] = range(20)
    t.Resize(3, 4)
    return at.Tensor(t)


SOURCES = [owned, of_torch, a_view_of_torch, of_numpy, retained, of_caffe2]


@pytest.mark.parametrize("source", SOURCES)
def test_views_are_views_of_one_torch_storage(source) -> None:
    x = source()
    whole = x.to_torch()
    for view in (x[1:], x.t(), x[:, 1::2], x.view(12), x.view("int32"), x[2, 3]):
        out = view.to_torch()
        assert same_torch_storage(out, whole)
        assert out.data_ptr() == view.data_ptr()
        assert tuple(out.shape) == tuple(view.sizes())
        assert out.dtype == view.dtype().torch
        assert out.tolist() == view.tolist()
        assert not out._is_view()
        assert (
            out.storage_offset() * out.itemsize + out.untyped_storage().data_ptr() == out.data_ptr()
        )


@pytest.mark.parametrize("source", SOURCES)
def test_storage_offset_equals_torchs(source) -> None:
    x = source()
    for view in (x, x[1:], x.t()[2], x.view("uint8")):
        assert view.storage_offset() == view.to_torch().storage_offset()
        storage = view.storage()
        assert storage.data_ptr() == view.to_torch().untyped_storage().data_ptr()
        assert storage.data_ptr() + view.storage_offset() * view.itemsize() == view.data_ptr()
        assert storage.nbytes() >= view.storage_offset() * view.itemsize() + 1


@pytest.mark.parametrize("source", SOURCES)
def test_an_operation_refuses_operands_that_overlap(source) -> None:
    x = source()
    before = x.tolist()
    for write in (
        lambda: x[1:].add_(x[:-1]),
        lambda: at.cumsum(x[:-1], 0, out=x[1:]),
        lambda: torch.add(x[:-1], 1, out=x[1:]),
        lambda: x[1:].__iadd__(x[:-1]),
        lambda: x.expand(2, 3, 4).add_(1),
    ):
        with pytest.raises(c10.EnforceNotMet, match="single memory location"):
            write()
    assert x.tolist() == before


def test_x_plus_its_transpose_is_refused() -> None:
    x = at.arange(9.0).reshape(3, 3)
    with pytest.raises(c10.EnforceNotMet, match="single memory location"):
        x += x.t()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    x += x
    assert x.tolist() == [[0, 2, 4], [6, 8, 10], [12, 14, 16]]


@pytest.mark.parametrize("source", SOURCES)
def test_as_strided_counts_from_the_begin_of_the_storage(source) -> None:
    x = source()
    v = x[1:]
    theirs = v.to_torch()
    for sizes, strides, offset in (((2,), (1,), 0), ((2, 2), (4, 1), 1), ((3,), (2,), None)):
        expected = theirs.as_strided(sizes, strides, offset).tolist()
        assert v.as_strided(sizes, strides, offset).tolist() == expected
        assert at.as_strided(v, sizes, strides, offset).tolist() == expected
        assert torch.as_strided(v, sizes, strides, offset).tolist() == expected
        written = at.as_strided_scatter(v, at.full(sizes, -1.0), sizes, strides, offset)
        assert (
            written.tolist()
            == torch.as_strided_scatter(
                theirs, torch.full(sizes, -1.0), sizes, strides, offset
            ).tolist()
        )


def test_as_strided_reaches_all_of_the_storage_of_an_imported_view() -> None:
    t = torch.arange(10)
    v = bridge.from_dlpack(t[4:6])
    assert v.as_strided((10,), (1,), 0).tolist() == list(range(10))
    assert v.as_strided((3,), (-2,), 9).tolist() == [9, 7, 5]
    v.as_strided((1,), (1,), 9).fill_(-1)
    assert t[9] == -1
    with pytest.raises(c10.EnforceNotMet, match="reach outside"):
        v.as_strided((11,), (1,), 0)
    with pytest.raises(c10.EnforceNotMet, match="storage_offset >= 0"):
        v.as_strided((2,), (1,), -1)


def test_set_takes_offsets_as_storage_offset_gives_them() -> None:
    t = torch.arange(10)
    v = bridge.from_dlpack(t[4:])
    x = at.empty(0, "int64")
    x.set_(v.storage(), v.storage_offset(), v.sizes(), v.strides())
    assert x.tolist() == [4, 5, 6, 7, 8, 9]
    assert x.data_ptr() == v.data_ptr()
    x.set_(v.storage())
    assert x.tolist() == list(range(10))
    x.set_(v.storage(), 1, (2,))
    assert x.tolist() == [1, 2]


def test_is_set_to_says_whether_two_views_are_one() -> None:
    x = owned()
    assert x[1:].is_set_to(x[1:])
    assert not x[1:].is_set_to(x[:-1])


@pytest.mark.parametrize("source", SOURCES)
def test_gradients_of_an_exported_tensor_stay_outside(source) -> None:
    x = source()
    out = x[1:].to_torch()
    out.add_(torch.ones(2, 4, requires_grad=True))
    assert out.requires_grad
    assert not x.to_torch().requires_grad or source is of_torch
    assert isinstance(x[1:].add(1), at.Tensor)
    assert isinstance(x[0].add(1), at.Tensor)


def test_a_view_that_was_changed_outside_changes_nothing_inside() -> None:
    x = owned()
    out = x.to_torch()
    out.t_()
    out.set_(torch.zeros(2))
    assert x.to_torch().shape == (3, 4)
    assert x.add(0).tolist() == x.tolist()


def test_new_memory_is_a_new_torch_storage() -> None:
    t = caffe2.Tensor([4], "cpu")
    t.mutable_data("float32")[:] = 1
    before = t.to_torch()
    t.Resize(1000)
    t.mutable_data("float32")[:] = 2
    after = t.to_torch()
    assert not same_torch_storage(before, after)
    assert after.tolist() == [2.0] * 1000
    assert before.tolist() == [1.0] * 4


MODES = ["inference", "fake", "fake beside", "grad", "functionalize", "vmap", "dispatch", "copies"]


@pytest.mark.parametrize("part", [slice(None), slice(1, None)], ids=["whole", "view"])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", MODES)
def test_modes_of_torch_do_not_change_exported_tensors(mode, source, part) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Logs(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Copies(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})).clone()

    x, found = source(), []
    shown = x if part == slice(None) else x[part]

    def convert(_=None):
        found.extend(shown.to_torch() for _ in range(4))  # views are kept from the second on
        return torch.zeros(())

    if mode == "inference":
        with torch.inference_mode():
            convert()
    elif mode == "fake":
        with torch._subclasses.FakeTensorMode():
            convert()
    elif mode == "fake beside":
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
            convert()
    elif mode == "copies":
        with Copies():
            convert()
    elif mode == "grad":
        torch.func.grad(lambda a: a * 2 + convert())(torch.ones(()))
    elif mode == "functionalize":
        torch.func.functionalize(convert)(torch.ones(()))
    elif mode == "vmap":
        torch.func.vmap(lambda a: a + convert())(torch.ones(2))
    else:
        with Logs():
            convert()
    for out in found:
        assert type(out) is torch.Tensor
        assert out.data_ptr() == shown.data_ptr()
        assert out.shape == shown.shape
        out.add_(1)  # also outside of inference mode
        assert same_torch_storage(out, x.to_torch())


def test_the_memory_goes_with_the_last_view() -> None:
    array = np.ones(1000)
    gone = weakref.ref(array)
    x = bridge.from_dlpack(array)
    del array
    view = x[10:].to_torch()
    x.add_(1)
    del x
    gc.collect()
    assert gone() is not None
    assert view.sum() == 2 * 990
    del view
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("sizes", "strides"), [((1, 2), (-1, 0)), ((1, 3), (-4, 2)), ((2, 1, 2), (2, -8, 4))]
)
def test_a_negative_stride_that_no_element_takes_is_positive_in_torch(sizes, strides) -> None:
    nbytes = tuple(stride * 4 for stride in strides)
    array = np.lib.stride_tricks.as_strided(np.arange(20, dtype=np.float32)[8:], sizes, nbytes)
    x = bridge.from_dlpack(array)
    assert tuple(x.strides()) == strides
    t = bridge.to_torch(x, copy=False)
    assert t.tolist() == array.tolist()
    assert t.data_ptr() == array.ctypes.data
