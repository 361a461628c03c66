# SPDX-License-Identifier: Apache-2.0
"""`__array_interface__` of both wrappers, read as a consumer that knows nothing else reads it."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2


class Reader:
    """An object with the interface of a tensor and no other protocol; it keeps the tensor."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.__array_interface__ = tensor.__array_interface__


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int64", "float16", "complex128"])
def test_every_element_type_is_read_at_its_address(name: str) -> None:
    x = at.ones(2, 3, dtype=name)
    array = np.asarray(Reader(x))
    assert (array.dtype.name, array.shape) == (name, (2, 3))
    assert array.ctypes.data == x.data_ptr()
    array[0, 0] = 0
    assert x[0, 0].item() == 0


def test_the_interface_has_the_fields_of_version_3() -> None:
    x = at.zeros(2, 3)
    assert x.__array_interface__ == {
        "data": (x.data_ptr(), False),
        "shape": (2, 3),
        "strides": None,
        "typestr": "<f4",
        "version": 3,
    }
    assert x.t().__array_interface__["strides"] == (4, 12)
    assert caffe2.Tensor([2], [1, 2]).__array_interface__["shape"] == (2,)


def test_read_only_memory_is_exported_read_only() -> None:
    array = np.asarray(Reader(bridge.from_dlpack(b"abc")))
    assert not array.flags.writeable


def test_negative_strides_are_exported() -> None:
    x = bridge.from_dlpack(np.arange(4)[::-1])
    assert np.asarray(Reader(x)).tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize(
    "x",
    [
        at.zeros(2, dtype="bfloat16"),
        at.zeros(2, dtype="float8_e4m3fn"),
        caffe2.Tensor(),
        caffe2.Tensor([2], "cpu"),
        bridge.asarray(["a"]),
    ],
    ids=repr,
)
def test_tensors_without_memory_for_numpy_have_no_interface(x: Any) -> None:
    assert not hasattr(x, "__array_interface__")


def test_bfloat16_stays_bfloat16_in_numpy() -> None:
    assert np.asarray(at.zeros(2, dtype="bfloat16")).dtype.name == "bfloat16"


def test_the_memory_stays_though_the_tensor_gets_other_memory() -> None:
    x = caffe2.Tensor([1000], np.arange(1000))
    array = np.asarray(Reader(x))
    x.FreeMemory()
    x.Resize(100_000)
    x.mutable_data("float32")[:] = 7
    gc.collect()
    assert (array == np.arange(1000)).all()


def test_reading_the_interface_is_audited() -> None:
    x = at.zeros(3)
    with bridge.audit() as log:
        assert x.__array_interface__["version"] == 3
    assert [(record.copied, record.nbytes) for record in log.records] == [(False, 12)]
