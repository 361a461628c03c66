# SPDX-License-Identifier: Apache-2.0
"""The order of doors, exporters of new memory, and what is refused."""

from __future__ import annotations

import re
from collections import UserList, deque
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import c10
from bridge.caffe2 import workspace

DOORS = [
    bridge.from_dlpack,
    bridge.asarray,
    bridge.to_numpy,
    bridge.to_torch,
    lambda x: bridge.convert(x, "at"),
    bridge.explain,
    lambda x: bridge.shares_memory(x, x),
]
ONE, TWO = np.array([1.0]), np.array([2.0])


def doors(**methods: Any) -> Any:
    """Return an object of a new class with these methods and properties."""
    return type("Doors", (), methods)()


def array(held: Any) -> Any:
    return lambda self, dtype=None, copy=None: held


def interface(held: Any) -> Any:
    return property(lambda self: held.__array_interface__)


def fails(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("not asked")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: doors(__array__=array(ONE)),
        lambda: doors(__array_interface__=interface(ONE), __array__=fails, to_dlpack=fails),
        lambda: doors(to_dlpack=lambda self: torch.ones(1).__dlpack__(), __array__=fails),
        lambda: doors(
            __dlpack__=lambda self, **options: ONE.__dlpack__(**options),
            __dlpack_device__=lambda self: (1, 0),
            __array_interface__=property(fails),
            __array__=fails,
        ),
    ],
    ids=["__array__", "__array_interface__", "to_dlpack", "__dlpack__"],
)
def test_all_doors_take_the_same(door: Any, make: Any) -> None:
    door(make())
    assert bridge.from_dlpack(make()).tolist() == [1.0]
    assert workspace.FeedBlob("door", make()) is True
    assert workspace.FetchBlob("door").tolist() == [1.0]


def test_an_attribute_of_one_object_does_not_count_for_its_class() -> None:
    cls = type("Doors", (), {})
    with_door, without = cls(), cls()
    with_door.__array_interface__ = ONE.__array_interface__
    assert bridge.from_dlpack(with_door).data_ptr() == ONE.ctypes.data
    with pytest.raises(TypeError):
        bridge.from_dlpack(without)
    assert bridge.from_dlpack(with_door).tolist() == [1.0]


FRESH = {
    "__array_interface__": lambda: doors(
        __array_interface__=property(
            lambda self: {
                "version": 3,
                "shape": (3,),
                "typestr": "|u1",
                "data": bytes(bytearray(b"abc")),
            }
        )
    ),
    "__array_interface__ writable": lambda: doors(
        __array_interface__=property(
            lambda self: {
                "version": 3,
                "shape": (3,),
                "typestr": "|u1",
                "data": np.uint8([97, 98, 99]),
            }
        )
    ),
    "__array__": lambda: doors(
        __array__=lambda self, dtype=None, copy=None: np.frombuffer(bytearray(b"abc"), np.uint8)
    ),
    "__array__ without copy": lambda: doors(
        __array__=lambda self, dtype=None: np.frombuffer(bytearray(b"abc"), np.uint8)
    ),
}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("make", FRESH.values(), ids=FRESH)
def test_new_memory_at_each_call_is_a_copy(make: Any) -> None:
    x = make()
    with bridge.audit() as log:
        y = bridge.from_dlpack(x)
        bridge.asarray(x, copy=True)
        bridge.to_torch(x)
        bridge.to_numpy(x, copy=True)
    assert y.tolist() == list(b"abc")
    assert [(record.copied, record.nbytes) for record in log.records] == [(True, 3)] * 4
    for call in (bridge.from_dlpack, bridge.asarray, bridge.to_numpy, bridge.to_torch):
        with pytest.raises(BufferError, match="new memory"):
            call(x, copy=False)
        with bridge.no_copy(), pytest.raises(BufferError, match="new memory"):
            call(x)
    assert not bridge.shares_memory(x, y)


def test_an_array_method_that_refuses_to_share_is_called_for_a_copy() -> None:
    def copying(self: Any, dtype: Any = None, copy: Any = None) -> Any:
        if copy is False:
            raise ValueError("computed anew")
        return ONE

    x = doors(__array__=copying)
    with pytest.raises(BufferError, match="computed anew"):
        bridge.from_dlpack(x, copy=False)
    with bridge.audit() as log:
        bridge.from_dlpack(x)
    assert log.copied_bytes == 8


def test_new_memory_of_foreign_byte_order_is_copied_once() -> None:
    x = doors(__array__=lambda self, dtype=None, copy=None: np.arange(3, dtype=">i4"))
    with bridge.audit() as log:
        assert bridge.from_dlpack(x).tolist() == [0, 1, 2]
    assert log.copied_bytes == 12
    with pytest.raises(BufferError, match="new memory"):
        bridge.from_dlpack(x, copy=False)
    assert not bridge.shares_memory(x, np.arange(3))


def test_masked_elements_of_an_array_method_are_refused() -> None:
    masked = np.ma.array([1, 2, 3], mask=[False, True, True])
    x = doors(__array__=array(masked))
    for call in (bridge.from_dlpack, bridge.asarray, bridge.to_torch):
        with pytest.raises(BufferError, match=r"2 nulls.*filled"):
            call(x)
    unmasked = np.ma.array([1, 2, 3])
    y = bridge.from_dlpack(doors(__array__=array(unmasked)))
    assert y.data_ptr() == unmasked.data.ctypes.data


def test_strings_of_an_array_method_are_read() -> None:
    x = doors(__array__=array(np.array(["a", b"b"], object)), dtype=np.dtype(object))
    assert bridge.asarray(x).tolist() == [b"a", b"b"]


def fails_of_any_kind(self: Any, name: str) -> Any:
    raise KeyError(name)


def test_objects_whose_attributes_fail_have_no_memory() -> None:
    x = doors(__getattr__=fails_of_any_kind)
    for call in (bridge.from_dlpack, bridge.asarray, bridge.to_torch, bridge.explain):
        with pytest.raises(TypeError, match="no tensor's memory"):
            call(x)
    with pytest.raises(c10.EnforceNotMet):
        workspace.FeedBlob("door", x)
    # an attribute for any name is none
    with pytest.raises(TypeError, match="no tensor's memory"):
        bridge.from_dlpack(doors(__getattr__=lambda self, name: lambda: None))


LONG = "no such type\nframe 1 of C++\nframe 2 of C++"


def fails_at_length(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(LONG)


@pytest.mark.parametrize(
    "make",
    [
        lambda: doors(__array__=fails_at_length),
        lambda: doors(__array_interface__=property(fails_at_length)),
        lambda: doors(to_dlpack=fails_at_length),
        lambda: doors(__dlpack__=fails_at_length, __dlpack_device__=lambda self: (1, 0)),
        lambda: doors(__dlpack__=fails_at_length, __dlpack_device__=fails_at_length),
        lambda: doors(__arrow_c_array__=fails_at_length),
    ],
)
def test_errors_of_libraries_are_one_line(make: Any) -> None:
    for call in (bridge.from_dlpack, bridge.asarray, bridge.to_numpy):
        with pytest.raises(BufferError, match="no such type") as caught:
            call(make())
        assert "frame" not in str(caught.value)


def test_copies_of_producers_count_once() -> None:
    class Producer:
        def __init__(self) -> None:
            self.held = np.arange(5)

        def __dlpack__(self, **options: Any) -> Any:
            return self.held.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.held.__dlpack_device__()

    x = Producer()
    with bridge.audit() as log:
        y = bridge.from_dlpack(x, copy=True)
    assert log.copied_bytes == 40
    assert y.data_ptr() != x.held.ctypes.data


class Frame:
    """Without a door of its own; its attributes have some."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


@pytest.mark.parametrize(
    ("x", "named"),
    [
        (Frame(data=ONE), r"\bdata\b"),
        (Frame(planes=(b"ab", b"c")), r"planes\[0\]"),
        (Frame(values=bytearray(b"a")), r"\bvalues\b"),
        (Frame(pixels=ONE), r"\bpixels\b"),
        (Frame(nothing=5), "no importer is registered"),
        (5, "asarray"),
        ([1, 2], "asarray"),
        ("text", "asarray"),
        (deque([1]), "asarray"),
        ({1: 2}, "has no tensor's memory"),
    ],
)
def test_a_type_error_names_a_call_that_works(x: Any, named: str) -> None:
    # (lists and dicts are trees to the others)
    converting = () if isinstance(x, (list, dict)) else (bridge.to_torch, bridge.to_numpy)
    for call in (bridge.from_dlpack, bridge.explain, *converting):
        with pytest.raises(TypeError, match=named):
            call(x)


def test_a_type_error_does_not_suggest_numbers_that_describe_the_object() -> None:
    x = doors(shape=np.int64(3), nrows=np.int64(3), data=doors(values=ONE))
    with pytest.raises(TypeError, match=r"Convert its data\.values\."):
        bridge.from_dlpack(x)


@pytest.mark.parametrize(
    ("package", "name", "call"),
    [("SimpleITK", "Image", "GetArrayViewFromImage(x)"), ("cv2", "UMat", "x.get()")],
)
def test_the_call_that_gives_the_elements_is_named(package: str, name: str, call: str) -> None:
    made = getattr(pytest.importorskip(package), name)
    with pytest.raises(TypeError, match=re.escape(call)):
        bridge.from_dlpack(made(2, 2, 5) if name == "UMat" else made(2, 2, 1))


def test_a_type_error_does_not_suggest_attributes_that_fail() -> None:
    cls = type(
        "Broken", (), {"data": property(lambda self: 1 / 0), "values": property(lambda s: ONE)}
    )
    with pytest.raises(TypeError, match="values"):
        bridge.from_dlpack(cls())


@pytest.mark.parametrize(
    ("x", "values"),
    [
        (deque([1, 2]), [1, 2]),
        (UserList([1.5]), [1.5]),
        (deque(["a"]), [b"a"]),
        (np.array(["a", b"b"], dtype=object), [b"a", b"b"]),
        (3, 3),
        ([[1], [2]], [[1], [2]]),
        (["x", "y"], [b"x", b"y"]),
    ],
)
def test_values_without_memory_are_copied(x: Any, values: Any) -> None:
    assert bridge.asarray(x).tolist() == values
    assert workspace.FeedBlob("values", x) is True
    assert workspace.FetchBlob("values").tolist() == values
    with pytest.raises(BufferError):
        bridge.asarray(x, copy=False)


def test_missing_strings_and_mixed_objects_are_refused() -> None:
    with pytest.raises(BufferError, match="2 nulls"):
        bridge.asarray(np.array(["a", None, float("nan")], dtype=object))
    with pytest.raises(BufferError, match="Python objects"):
        bridge.asarray(np.array(["a", 1], dtype=object))


def test_a_list_of_tensors_that_require_grad_is_refused() -> None:
    with pytest.raises(BufferError, match=r"detach\(\)"):
        bridge.asarray([torch.ones(1, requires_grad=True)])


def test_a_feed_makes_columns_row_major() -> None:
    held = np.arange(6.0).reshape(2, 3).T
    x = doors(__array__=array(held))
    workspace.FeedBlob("columns", x)
    assert workspace.FetchBlob("columns").tolist() == held.tolist()
