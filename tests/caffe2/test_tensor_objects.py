# SPDX-License-Identifier: Apache-2.0
"""Tensors and instances of registered classes as elements: made and gone with the buffer."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2

from .tensor_state import filled, refused, values


class Counted:
    """Counts its instances; equal where `value` is."""

    alive = 0

    def __init__(self) -> None:
        self.value = 0
        Counted.alive += 1

    def __deepcopy__(self, memo: dict[int, Any]) -> "Counted":
        copied = Counted()
        copied.value = self.value
        return copied

    def __del__(self) -> None:
        Counted.alive -= 1


COUNTED = c10.TypeMeta.Register(Counted)
OBJECT_TYPES = [c10.string, c10.tensor, COUNTED]


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    gc.collect()
    assert Counted.alive == 0
    yield
    gc.collect()
    assert Counted.alive == 0


def test_a_registered_class_is_constructed_and_destroyed() -> None:
    tensor = caffe2.Tensor((3,), "cpu")
    view = tensor.mutable_data(COUNTED)
    assert Counted.alive == 3
    assert all(type(element) is Counted for element in view)
    assert len({id(element) for element in view}) == 3
    assert tensor.IsType(Counted)
    assert tensor.mutable_data(Counted)[0] is view[0]
    del view
    tensor.FreeMemory()
    assert Counted.alive == 0


DESTROYERS: dict[str, Callable[[caffe2.Tensor], object]] = {
    "free": lambda t: t.FreeMemory(),
    "numbers": lambda t: t.mutable_data("float32"),
    "strings": lambda t: t.mutable_data("string"),
    "resize": lambda t: t.Resize(9),
    "share": lambda t: t.ShareData(filled((3,))),
    "copy": lambda t: t.CopyFrom(filled((2,))),
    "external": lambda t: t.ShareExternalPointer(np.zeros(3)),
    "reinitialize": lambda t: caffe2.ReinitializeTensor(t, (2,), "int8"),
    "storage reset": lambda t: t.storage().reset(),
}


@pytest.mark.parametrize("destroy", DESTROYERS.values(), ids=DESTROYERS)
def test_objects_go_with_the_buffer(destroy: Callable[[caffe2.Tensor], object]) -> None:
    tensor = caffe2.empty((3,), COUNTED)
    assert Counted.alive == 3
    destroy(tensor)
    assert Counted.alive == 0


def test_objects_go_with_the_last_sharer_or_view() -> None:
    tensor = caffe2.empty((3,), COUNTED)
    alias, view = tensor.Alias(), tensor.data()
    element = weakref.ref(view[0])
    del tensor
    assert Counted.alive == 3
    alias.FreeMemory()
    assert element() is view[0]
    del view
    assert Counted.alive == 0


def test_extend_keeps_the_very_objects_or_equal_ones() -> None:
    tensor = caffe2.empty((2,), COUNTED)
    tensor.data()[0].value, tensor.data()[1].value = 10, 20
    tensor.Extend(1)
    assert [element.value for element in tensor.data()] == [10, 20, 0]
    tensor.Extend(10, 0.0)
    assert [element.value for element in tensor.data()] == [10, 20, *[0] * 11]
    assert Counted.alive == 13


def test_copies_of_objects_are_deep() -> None:
    tensor = caffe2.empty((2,), COUNTED)
    tensor.data()[0].value = 10
    cloned, other = tensor.Clone(), caffe2.Tensor("cpu")
    other.CopyFrom(tensor)
    assert Counted.alive == 6
    tensor.data()[0].value = 99
    for copied in (cloned, other):
        assert [element.value for element in copied.data()] == [10, 0]
        assert copied.data()[1] is not tensor.data()[1]


class Unwilling:
    """Cannot be made after the second."""

    made = 0

    def __init__(self) -> None:
        Unwilling.made += 1
        if Unwilling.made > 2:
            raise RuntimeError("no more of these")


def test_a_constructor_that_raises_leaves_the_tensor() -> None:
    type_meta = c10.TypeMeta.Register(Unwilling)
    for tensor in (filled((4,)), filled((4,), "string"), caffe2.Tensor((4,), "cpu")):
        Unwilling.made = 0
        with refused(tensor, error=Exception, match="no more of these"):
            tensor.mutable_data(type_meta)


class Uncopyable:
    def __deepcopy__(self, memo: dict[int, Any]) -> "Uncopyable":
        raise ValueError("one of a kind")


def test_a_copy_that_raises_leaves_the_tensor() -> None:
    source = caffe2.empty((2,), c10.TypeMeta.Register(Uncopyable))
    for tensor in (filled((4,)), filled((4,), "string"), caffe2.Tensor((4,), "cpu")):
        with refused(tensor, source, error=Exception, match="one of a kind"):
            tensor.CopyFrom(source)
    with refused(source, error=Exception, match="one of a kind"):
        source.Clone()


def test_registered_classes_refuse_other_elements() -> None:
    tensor = caffe2.empty((2,), COUNTED)
    view = tensor.mutable_data(COUNTED)
    with pytest.raises((c10.EnforceNotMet, TypeError)):
        view[0] = b"a string"
    assert type(view[0]) is Counted
    replacement = Counted()
    view[0] = replacement
    assert tensor.data()[0] is replacement


def test_registering_twice_is_one_type() -> None:
    assert c10.TypeMeta.Register(Counted) == COUNTED
    assert COUNTED.is_pod is False
    assert COUNTED.dlpack is None
    assert "Counted" in COUNTED.name


@pytest.mark.parametrize("spelling", [c10.tensor, "tensor"], ids=repr)
def test_tensors_as_elements(spelling: Any) -> None:
    tensor = caffe2.Tensor((2,), "cpu")
    view = tensor.mutable_data(spelling)
    assert tensor.dtype() == c10.tensor
    inner = filled((3,), "int64")
    view[0] = inner
    assert values(tensor.data()[0]) == [1, 2, 3]
    cloned = tensor.Clone()
    inner.mutable_data("int64")[:] = 0
    assert values(tensor.data()[0]) == [0, 0, 0]
    assert values(cloned.data()[0]) == [1, 2, 3]
    tensor.Extend(1)
    assert values(tensor.data()[0]) == [0, 0, 0]
    with pytest.raises((c10.EnforceNotMet, TypeError)):
        view[1] = b"a string"


@pytest.mark.parametrize("dtype", OBJECT_TYPES, ids=["string", "tensor", "class"])
@pytest.mark.parametrize(
    "leave",
    [
        at.Tensor,
        bridge.from_dlpack,
        bridge.to_torch,
        lambda t: t.to_torch(),
        lambda t: t.__dlpack__(),
        lambda t: t.__dlpack__(max_version=(1, 0)),
        np.from_dlpack,
        memoryview,
    ],
    ids=["at", "from_dlpack", "to_torch", "method", "__dlpack__", "versioned", "NumPy", "buffer"],
)
def test_objects_do_not_leave(leave: Callable[[Any], Any], dtype: Any) -> None:
    tensor = caffe2.empty((2,), dtype)
    with pytest.raises((BufferError, c10.EnforceNotMet)) as caught:
        leave(tensor)
    assert str(caught.value)
    assert tensor.storage().use_count() == 1


def test_cycles_are_collected() -> None:
    tensor = caffe2.empty((1,), COUNTED)
    tensor.data()[0].value = tensor  # type: ignore[assignment]
    del tensor
    gc.collect()
    assert Counted.alive == 0
