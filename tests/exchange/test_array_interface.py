# SPDX-License-Identifier: Apache-2.0
"""Objects that have `__array_interface__` and nothing else, truthful and not."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at
from tests.helpers.check import check_tensor
from tests.helpers.element_types import IN_BUFFERS, ElementType
from tests.helpers.isolate import isolated


class Interface:
    """An object with only `__array_interface__`, over a NumPy array that it keeps."""

    def __init__(self, array: np.ndarray, **fields: Any) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, **fields}


def base() -> np.ndarray:
    return np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("element", IN_BUFFERS, ids=str)
def test_every_element_type_is_shared(element: ElementType) -> None:
    data = element.sample_bytes(6)
    array = np.frombuffer(bytearray(data), element.numpy).reshape(2, 3)
    x = bridge.from_dlpack(Interface(array))
    assert type(x) is at.Tensor
    check_tensor(x, (2, 3), element, address=array.ctypes.data, data=data)


@pytest.mark.parametrize(
    "array", [base().T, base()[::-1], base()[:, ::2], base()[1:1], np.array(2.5, np.float32)]
)
def test_every_layout_is_shared(array: np.ndarray) -> None:
    x = bridge.from_dlpack(Interface(array))
    strides = [stride // 4 for stride in array.strides]
    check_tensor(x, array.shape, strides=strides, address=array.ctypes.data, data=array.tobytes())


def test_read_only_memory_stays_read_only() -> None:
    array = base()
    array.flags.writeable = False
    x = bridge.from_dlpack(Interface(array))
    check_tensor(x, (2, 3), address=array.ctypes.data, readonly=True)
    assert not bridge.to_numpy(Interface(array)).flags.writeable


def test_the_object_is_held() -> None:
    holder = Interface(base())
    alive = weakref.ref(holder)
    x = bridge.from_dlpack(holder)
    del holder
    gc.collect()
    assert alive() is not None
    assert x.tolist() == base().tolist()
    del x
    gc.collect()
    assert alive() is None


def test_foreign_byte_order_is_copied() -> None:
    array = base().astype(">f4")
    assert bridge.from_dlpack(Interface(array)).tolist() == base().tolist()
    with pytest.raises(BufferError):
        bridge.from_dlpack(Interface(array), copy=False)


def test_a_buffer_serves_as_data() -> None:
    data = bytearray(base().tobytes())
    holder = Interface(base(), data=data)
    assert bridge.from_dlpack(holder).tolist() == base().tolist()
    offset = Interface(base(), data=data, offset=8, shape=(4,))
    assert bridge.from_dlpack(offset).tolist() == [2, 3, 4, 5]


def test_strides_of_none_are_compact() -> None:
    x = bridge.from_dlpack(Interface(base(), strides=None))
    assert x.tolist() == base().tolist()


BROKEN: dict[str, dict[str, Any]] = {
    "no data": {"data": None},
    "NULL": {"data": (0, False)},
    "data that is no address": {"data": ("here", False)},
    "negative address": {"data": (-8, False)},
    "negative extent": {"shape": (-2, 3)},
    "shape that is none": {"shape": None},
    "overflowing shape": {"shape": (2**40, 2**40)},
    "huge extents": {"shape": (2**100,)},
    "overflowing strides": {"strides": (2**63 - 8, 4)},
    "too few strides": {"strides": (4,)},
    "unknown type": {"typestr": "<q9"},
    "a repetition that is no number": {"typestr": "07,f4"},
    "a repetition below zero": {"typestr": ("f4", -1)},
    "no type": {"typestr": None},
    "objects": {"typestr": "|O8"},
    "strings": {"typestr": "|S4"},
    "void": {"typestr": "|V4"},
    "dates": {"typestr": "<M8[s]"},
    "long double": {"typestr": "<f16"},
    "a mask": {"mask": Interface(np.zeros(6, bool))},
    "a buffer too small": {"data": bytearray(4)},
    "an offset beyond the buffer": {"data": bytearray(24), "offset": 8},
}


@pytest.mark.parametrize("name", BROKEN)
@isolated
def test_broken_interfaces_are_refused(name: str) -> None:
    with pytest.raises((BufferError, TypeError)):
        bridge.from_dlpack(Interface(base(), **BROKEN[name]))


@pytest.mark.parametrize("missing", ["shape", "typestr"])
@isolated
def test_missing_entries_are_refused(missing: str) -> None:
    holder = Interface(base())
    del holder.__array_interface__[missing]
    with pytest.raises((BufferError, TypeError)):
        bridge.from_dlpack(holder)


@pytest.mark.parametrize("wrong", [None, 5, "text", [], ()], ids=repr)
@isolated
def test_interfaces_that_are_not_dictionaries_are_refused(wrong: Any) -> None:
    holder = Interface(base())
    holder.__array_interface__ = wrong
    with pytest.raises((BufferError, TypeError)):
        bridge.from_dlpack(holder)


@pytest.mark.parametrize("data", [None, (0, False), (0, True)], ids=str)
@isolated
def test_no_elements_need_no_memory(data: Any) -> None:
    """NumPy takes the object for a scalar then, and writes its text, or crashes on a `|O`."""
    for missing in (False, True):
        holder = Interface(base(), shape=(0, 3), data=data)
        if missing:
            del holder.__array_interface__["data"]
        check_tensor(bridge.from_dlpack(holder), (0, 3), readonly=data == (0, True) and not missing)
        for typestr in ("|S1", "|U1", "|O"):
            holder.__array_interface__["typestr"] = typestr
            with pytest.raises(BufferError):
                bridge.from_dlpack(holder)


@pytest.mark.parametrize(
    "data",
    [5, "text", (), (0,), (0, False, 0), (None, False), (base(), False), (0, base())],
    ids=repr,
)
@isolated
def test_data_without_an_address_is_refused_for_no_elements_too(data: Any) -> None:
    with pytest.raises(BufferError, match="describes no array"):
        bridge.from_dlpack(Interface(base(), shape=(0, 3), data=data))


class CudaInterface:
    """An object with only `__cuda_array_interface__`, of memory that is nowhere."""

    def __init__(self, **fields: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": (2,),
            "typestr": "<f4",
            "data": (0x10000, False),
            "version": 3,
            "strides": None,
            **fields,
        }


@pytest.mark.parametrize(
    "fields",
    [{"shape": (-1,)}, {"typestr": "|O8"}, {"shape": (2**40, 2**40)}, {"data": None}],
    ids=str,
)
@isolated
def test_broken_cuda_interfaces_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises((BufferError, TypeError)):
        bridge.from_dlpack(CudaInterface(**fields))


@pytest.mark.parametrize("typestr", ["<f16", "<c32", ">f4", "<M8[s]", "|S2", "|V4"])
@isolated
def test_cuda_interfaces_of_other_elements_are_refused(typestr: str) -> None:
    with pytest.raises(BufferError, match="not a native numeric type"):
        bridge.from_dlpack(CudaInterface(typestr=typestr))


@pytest.mark.parametrize("on", ["class", "property", "object"])
@isolated
def test_a_cuda_interface_of_none_is_passed_over(on: str) -> None:
    """The object has no CUDA memory: the doors behind it are tried, and this one not again."""
    name = "__cuda_array_interface__"
    value = property(lambda self: None) if on == "property" else None
    x = type("Host", (), {} if on == "object" else {name: value})()
    if on == "object":
        setattr(x, name, None)
    with pytest.raises(TypeError, match="no tensor's memory"):
        bridge.from_dlpack(x)
    x.__array_interface__ = np.arange(3).__array_interface__
    assert bridge.from_dlpack(x).sizes() == [3]


@pytest.mark.parametrize("name", ["__array_interface__", "__cuda_array_interface__"])
@pytest.mark.parametrize("error", [RuntimeError, KeyError, OSError, ValueError])
def test_an_error_of_an_interface_is_passed_on(name: str, error: type[Exception]) -> None:
    def raising(self: Any) -> Any:
        raise error("the grounds of the object")

    x = type("Raising", (), {name: property(raising)})()
    for entry in (bridge.from_dlpack, bridge.asarray, bridge.to_numpy):
        with pytest.raises(BufferError, match="the grounds of the object"):
            entry(x)
