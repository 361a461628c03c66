# SPDX-License-Identifier: Apache-2.0
"""Tensors and instances of registered classes as elements: made and gone with the buffer."""

import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2
from tests.helpers.isolate import run_python

from .state import filled, refused, values


class Plain:
    pass


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
def test_tensors_are_elements_and_copied_deeply(spelling: Any) -> None:
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
        bridge.to_numpy,
        bridge.asarray,
        lambda t: bridge.convert(t, "torch"),
        lambda t: bridge.convert(t, "numpy"),
        lambda t: bridge.convert(t, "at"),
        lambda t: t.to_torch(),
        lambda t: t.numpy(),
        lambda t: np.asarray(t),
        lambda t: t.__dlpack__(),
        lambda t: t.__dlpack__(max_version=(1, 0)),
        np.from_dlpack,
        memoryview,
    ],
    ids=[
        "at",
        "from_dlpack",
        "to_torch",
        "to_numpy",
        "asarray",
        "convert torch",
        "convert numpy",
        "convert at",
        "method",
        "numpy method",
        "__array__",
        "__dlpack__",
        "versioned",
        "NumPy",
        "buffer",
    ],
)
def test_objects_do_not_leave(leave: Callable[[Any], Any], dtype: Any) -> None:
    tensor = caffe2.empty((2,), dtype)
    with pytest.raises(BufferError, match=f"{dtype}.*plain memory"):
        leave(tensor)
    assert tensor.storage().use_count() == 1


def test_cycles_of_elements_are_collected() -> None:
    tensor = caffe2.empty((1,), COUNTED)
    tensor.data()[0].value = tensor  # type: ignore[assignment]
    del tensor
    gc.collect()
    assert Counted.alive == 0


def test_extend_moves_elements_that_are_not_shared() -> None:
    tensor = caffe2.empty((2,), c10.TypeMeta.Register(Uncopyable))
    first, second = tensor.data()
    tensor.Extend(3)
    assert tensor.data()[0] is first
    assert tensor.data()[1] is second
    alias = tensor.Alias()
    with refused(tensor, alias, error=ValueError, match="one of a kind"):
        tensor.Extend(100)


def test_extend_gives_sharers_no_say_in_the_elements() -> None:
    tensor = caffe2.empty((1,), COUNTED)
    alias = tensor.Alias()
    tensor.Extend(3)
    tensor.data()[0].value = 7
    assert alias.data()[0].value == 0


def test_tensors_without_content_are_copied_as_elements() -> None:
    tensor = caffe2.empty((3,), "tensor")
    view = tensor.data()
    view[1], view[2] = caffe2.Tensor((2, 3), "cpu"), filled((2,))
    view[2].FreeMemory()
    for copied in (tensor.Clone(), caffe2.Tensor(tensor, "cpu")):
        undefined, sized, freed = copied.data()
        assert not undefined.defined()
        assert sized.sizes() == (2, 3)
        assert not sized.dtype_initialized()
        assert freed.sizes() == (2,)
        assert freed.IsType("float32")
        assert not freed.storage_initialized()
        assert not sized.is_same(view[1])


def test_a_registered_class_is_unpickled_in_a_process_without_it() -> None:
    code = f"""
import pickle, sys
tensor = pickle.loads({pickle.dumps(caffe2.empty((2,), c10.TypeMeta.Register(Plain)))!r})
print(tensor.sizes().vec(), [type(element).__name__ for element in tensor.data()])
"""
    assert run_python(code) == "[2] ['Plain', 'Plain']\n"


@pytest.mark.parametrize("index", [None, "0", 1.5, [0], np.array([0, 1])], ids=repr)
def test_places_of_elements_are_ints(index: Any) -> None:
    view = filled((3,), "string").data()
    for use in (lambda: view[index], lambda: view.__setitem__(index, b"x")):
        with pytest.raises(TypeError) as caught:
            use()
        assert isinstance(caught.value, c10.EnforceNotMet)
    with pytest.raises(c10.EnforceNotMet):
        view[2**70]


def test_a_slice_of_elements_is_set_to_as_many() -> None:
    view = filled((3,), "string").data()
    view[::2] = ["x", b"y"]
    assert list(view) == [b"x", b"2", b"y"]
    for wrong in (5, None, [b"too", b"few"], [b"not", b"all", 3], b"abc"):
        with pytest.raises(c10.EnforceNotMet):
            view[:] = wrong
    assert list(view) == [b"x", b"2", b"y"]
