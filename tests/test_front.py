# SPDX-License-Identifier: Apache-2.0
"""`from_dlpack`, `asarray`, `convert` and `to_*`: arguments, kinds of sources, errors."""

import datetime
import decimal
import sys
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers.check import check_tensor
from tests.helpers.element_types import BY_NAME
from tests.helpers.ids import shown

TARGETS = ("torch", "numpy", "jax", "tensorflow", "cupy", "at", "caffe2")


def test_torch_and_numpy_share_one_address() -> None:
    t = torch.arange(6.0).reshape(2, 3)
    array = bridge.to_numpy(t)
    assert array.ctypes.data == t.data_ptr()
    assert array.flags.writeable
    array[0, 0] = 5
    assert t[0, 0] == 5
    assert bridge.to_torch(array).data_ptr() == t.data_ptr()


@pytest.mark.parametrize("source", [torch.ones(2, 3), np.ones((2, 3), np.float32)], ids=type)
def test_convert_takes_the_name_of_its_target(source: Any) -> None:
    address = source.data_ptr() if isinstance(source, torch.Tensor) else source.ctypes.data
    kinds = {
        "torch": torch.Tensor,
        "numpy": np.ndarray,
        "at": at.Tensor,
        "caffe2": caffe2.Tensor,
    }
    for name, kind in kinds.items():
        out = bridge.convert(source, name)
        assert type(out) is kind
        assert bridge.to_numpy(out).ctypes.data == address
        assert bridge.convert(out, name) is out


@pytest.mark.parametrize("name", ["", "Torch", "pytorch", "numpy ", "mxnet"])
def test_convert_to_an_unknown_name(name: str) -> None:
    with pytest.raises(ValueError) as caught:
        bridge.convert(torch.ones(2), name)
    for target in TARGETS:
        assert target in str(caught.value)


@pytest.mark.parametrize("name", [None, 5, np, b"torch", torch.Tensor])
def test_convert_to_no_name(name: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        bridge.convert(torch.ones(2), name)


def test_convert_passes_copy_on() -> None:
    t = torch.ones(3)
    for name in ("torch", "numpy", "at", "caffe2"):
        copied = bridge.convert(t, name, copy=True)
        shared = bridge.convert(t, name, copy=False)
        assert bridge.to_numpy(copied).ctypes.data != t.data_ptr()
        assert bridge.to_numpy(shared).ctypes.data == t.data_ptr()


@pytest.mark.parametrize("kind", ["torch", "numpy", "at"])
def test_convert_to_caffe2_makes_it_row_major(kind: str) -> None:
    turned = torch.arange(6.0).reshape(2, 3).t()
    source = bridge.convert(turned, kind)
    with pytest.raises(BufferError, match="contiguous"):
        bridge.convert(source, "caffe2", copy=False)
    with bridge.audit() as log:
        for copy in (None, True):
            out = bridge.convert(source, "caffe2", copy=copy)
            assert type(out) is caffe2.Tensor
            assert out.is_contiguous()
            assert out.numpy().tolist() == turned.tolist()
    assert [record.nbytes for record in log if record.copied] == [24, 24]


def test_convert_of_strings_and_of_nothing() -> None:
    strings = bridge.asarray(["a", "b"])
    for copy in (None, True):
        out = bridge.convert(strings, "caffe2", copy=copy)
        assert list(out.data()) == [b"a", b"b"]
        assert out.is_same(strings) is (copy is None)
    assert not bridge.convert(at.Tensor(), "caffe2").defined()
    for nothing in (at.Tensor(), caffe2.Tensor()):
        with pytest.raises(BufferError, match="undefined"):
            bridge.convert(nothing, "caffe2", copy=True)


NO_TENSORS: dict[str, Any] = {
    "None": None,
    "object": object(),
    "int": 5,
    "float": 2.5,
    "str": "text",
    "list": [1, 2],
    "tuple": (1, 2),
    "dict": {},
    "set": {1},
    "function": test_torch_and_numpy_share_one_address,
    "type": torch.Tensor,
    "wrapper type": at.Tensor,
    "numpy type": np.ndarray,
    "module": np,
    "generator": (i for i in range(3)),
    "decimal": decimal.Decimal(1),
    "date": datetime.date(2020, 1, 1),
}


@pytest.mark.parametrize("name", NO_TENSORS)
@pytest.mark.parametrize("entry", [bridge.from_dlpack, bridge.to_numpy, bridge.to_torch])
def test_objects_without_tensors_are_refused(entry: Any, name: str) -> None:
    if entry is not bridge.from_dlpack and name in ("list", "tuple", "dict"):
        assert entry(NO_TENSORS[name]) == NO_TENSORS[name]  # trees without tensors
        return
    with pytest.raises(TypeError):
        entry(NO_TENSORS[name])


def test_a_class_that_only_names_a_framework_loads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    pretender = type("Variable", (), {"__module__": "keras.src"})()
    with pytest.raises(TypeError, match="no tensor's memory"):
        bridge.from_dlpack(pretender)
    assert "keras" not in sys.modules


@pytest.mark.parametrize("entry", [bridge.from_dlpack, bridge.asarray, bridge.to_numpy])
def test_unknown_keywords_are_refused(entry: Any) -> None:
    with pytest.raises(TypeError):
        entry(at.ones(2), coopy=True)
    with pytest.raises(TypeError):
        entry()


@pytest.mark.parametrize("entry", [bridge.from_dlpack, bridge.asarray])
def test_options_are_by_name(entry: Any) -> None:
    with pytest.raises(TypeError):
        entry(at.ones(2), None)


def test_devices_that_do_not_exist_are_refused() -> None:
    t = torch.ones(2)
    for device in ("nowhere", "cpu:", "cuda:-3", 5.5, object()):
        with pytest.raises((TypeError, ValueError, RuntimeError, BufferError)):
            bridge.from_dlpack(t, device=device)


@pytest.mark.parametrize(
    ("value", "name", "shape"),
    [
        (True, "bool", ()),
        (5, "int64", ()),
        (2.5, "float64", ()),
        (1 + 2j, "complex128", ()),
        ([1, 2, 3], "int64", (3,)),
        ([1, 2.5], "float64", (2,)),
        ([True, False], "bool", (2,)),
        ([[1, 2], [3, 4], [5, 6]], "int64", (3, 2)),
        ((1, 2), "int64", (2,)),
        ([], "float64", (0,)),
        ([[], []], "float64", (2, 0)),
        ([1j], "complex128", (1,)),
    ],
    ids=repr,
)
def test_asarray_infers_as_numpy_does(value: Any, name: str, shape: tuple[int, ...]) -> None:
    x = bridge.asarray(value)
    assert type(x) is at.Tensor
    assert np.asarray(value).dtype.name == name
    check_tensor(x, shape, BY_NAME[name], data=np.asarray(value).tobytes())


@pytest.mark.parametrize("value", ["text", b"text"])
def test_asarray_of_a_string_is_a_scalar_of_bytes(value: Any) -> None:
    x = bridge.asarray(value)
    assert x.dtype() == c10.string
    assert tuple(x.sizes()) == ()
    assert x.item() == b"text"


def test_asarray_of_strings_is_a_tensor_of_bytes() -> None:
    x = bridge.asarray(["a", "bcd", ""])
    assert x.dtype() == c10.string
    assert tuple(x.sizes()) == (3,)
    assert x.tolist() == [b"a", b"bcd", b""]


@pytest.mark.parametrize("value", [[[1, 2], [3]], [1, [2]]], ids=repr)
def test_asarray_of_ragged_lists(value: Any) -> None:
    with pytest.raises((ValueError, TypeError, BufferError)):
        bridge.asarray(value)


@pytest.mark.parametrize("value", [object(), None, [object()], {}, [None]], ids=shown)
def test_asarray_refuses_objects_without_values(value: Any) -> None:
    with pytest.raises((TypeError, BufferError)):
        bridge.asarray(value)


@pytest.mark.parametrize("dtype", [None, "float64", "string"])
def test_asarray_refuses_a_list_that_contains_itself(dtype: str | None) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        bridge.asarray(loop, dtype=dtype)


def test_a_refused_cast_copies_nothing() -> None:
    x = at.ones(3)
    with bridge.audit() as log, pytest.raises(BufferError, match="float64"):
        bridge.asarray(x, dtype=float, copy=False)
    assert log.copied_bytes == 0
    assert bridge.asarray(x, dtype="float32", copy=False).data_ptr() == x.data_ptr()


def test_asarray_shares_memory_where_it_can() -> None:
    array = np.arange(6, dtype=np.float32)
    t = torch.arange(6, dtype=torch.float32)
    assert bridge.asarray(array).data_ptr() == array.ctypes.data
    assert bridge.asarray(t).data_ptr() == t.data_ptr()
    assert bridge.asarray(array, dtype="float32").data_ptr() == array.ctypes.data
    assert bridge.asarray(array, copy=False, dtype=np.float32).data_ptr() == array.ctypes.data
    assert bridge.asarray(array, copy=True).data_ptr() != array.ctypes.data


def test_asarray_casts_to_every_spelling_of_a_type() -> None:
    array = np.array([0.5, 1.5, 300.0], np.float32)
    for spelling in ("float64", np.float64, torch.float64, float, c10.float64):
        x = bridge.asarray(array, dtype=spelling)
        check_tensor(x, (3,), BY_NAME["float64"], data=array.astype(np.float64).tobytes())
    assert bridge.asarray([1, 2], dtype="bfloat16").dtype() == c10.bfloat16
    assert bridge.asarray([0, 1, 5], dtype=bool).tolist() == [False, True, True]
    with pytest.raises(BufferError):
        bridge.asarray(array, dtype="float64", copy=False)


def test_asarray_refuses_unknown_types() -> None:
    for wrong in ("float33", object(), 7):
        with pytest.raises((TypeError, ValueError)):
            bridge.asarray([1.0], dtype=wrong)


def test_a_list_cannot_be_shared() -> None:
    with pytest.raises((BufferError, ValueError)):
        bridge.asarray([1, 2], copy=False)


def test_version_is_a_number_as_text() -> None:
    assert isinstance(bridge.__version__, str)
    assert bridge.__version__[0].isdigit()


@pytest.mark.parametrize("value", [[1, 2], 3, "text", ["a"], np.ones(2)], ids=repr)
@pytest.mark.parametrize("copy", [1, "yes", "False"])
def test_asarray_refuses_a_copy_that_is_not_a_bool_or_none(value: Any, copy: Any) -> None:
    with pytest.raises(TypeError, match="copy is True, False or None"):
        bridge.asarray(value, copy=copy)


TO_CUDA: dict[str, Any] = {
    "from_dlpack": lambda x: bridge.from_dlpack(x, device="cuda:0"),
    "asarray": lambda x: bridge.asarray(x.tolist(), device="cuda:0"),
    "to": lambda x: x.to("cuda:0"),
    "empty_like": lambda x: at.empty_like(x, device="cuda:0"),
    "caffe2": lambda x: caffe2.Tensor(caffe2.Tensor(x), "cuda:0"),
    "empty": lambda x: caffe2.empty(x.sizes(), "cuda:0"),
    "pinned": lambda x: x.pin_memory(),
    "capsule": lambda x: x.__dlpack__(max_version=(1, 0), dl_device=(2, 0)),
}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("name", TO_CUDA)
def test_no_cuda_is_an_error_without_elements_too(name: str, size: int) -> None:
    with pytest.raises(BufferError, match=r"torch\.cuda\.is_available\(\) is False"):
        TO_CUDA[name](at.zeros(size))
