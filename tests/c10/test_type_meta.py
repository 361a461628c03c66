# SPDX-License-Identifier: Apache-2.0
"""`c10.TypeMeta`: the table of element types, every spelling of a type, and registered classes."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from tests.helpers.isolate import run_python


class Row(NamedTuple):
    """What one plain type must say: sizes in bytes, DLPack as (code, bits, lanes)."""

    name: str
    itemsize: int
    numpy: Any
    torch: torch.dtype | None
    dlpack: tuple[int, int, int]


ROWS = [
    Row("bool", 1, np.bool_, torch.bool, (6, 8, 1)),
    Row("int8", 1, np.int8, torch.int8, (0, 8, 1)),
    Row("int16", 2, np.int16, torch.int16, (0, 16, 1)),
    Row("int32", 4, np.int32, torch.int32, (0, 32, 1)),
    Row("int64", 8, np.int64, torch.int64, (0, 64, 1)),
    Row("uint8", 1, np.uint8, torch.uint8, (1, 8, 1)),
    Row("uint16", 2, np.uint16, torch.uint16, (1, 16, 1)),
    Row("uint32", 4, np.uint32, torch.uint32, (1, 32, 1)),
    Row("uint64", 8, np.uint64, torch.uint64, (1, 64, 1)),
    Row("float16", 2, np.float16, torch.float16, (2, 16, 1)),
    Row("float32", 4, np.float32, torch.float32, (2, 32, 1)),
    Row("float64", 8, np.float64, torch.float64, (2, 64, 1)),
    Row("complex64", 8, np.complex64, torch.complex64, (5, 64, 1)),
    Row("complex128", 16, np.complex128, torch.complex128, (5, 128, 1)),
    Row("bfloat16", 2, ml_dtypes.bfloat16, torch.bfloat16, (4, 16, 1)),
    Row("float8_e3m4", 1, ml_dtypes.float8_e3m4, None, (7, 8, 1)),
    Row("float8_e4m3", 1, ml_dtypes.float8_e4m3, None, (8, 8, 1)),
    Row("float8_e4m3b11fnuz", 1, ml_dtypes.float8_e4m3b11fnuz, None, (9, 8, 1)),
    Row("float8_e4m3fn", 1, ml_dtypes.float8_e4m3fn, torch.float8_e4m3fn, (10, 8, 1)),
    Row("float8_e4m3fnuz", 1, ml_dtypes.float8_e4m3fnuz, torch.float8_e4m3fnuz, (11, 8, 1)),
    Row("float8_e5m2", 1, ml_dtypes.float8_e5m2, torch.float8_e5m2, (12, 8, 1)),
    Row("float8_e5m2fnuz", 1, ml_dtypes.float8_e5m2fnuz, torch.float8_e5m2fnuz, (13, 8, 1)),
    # (torch 2.7)
    Row(
        "float8_e8m0fnu",
        1,
        ml_dtypes.float8_e8m0fnu,
        getattr(torch, "float8_e8m0fnu", None),
        (14, 8, 1),
    ),
]
every_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])

PYTHON_TYPES = [
    (bool, "bool"),
    (int, "int64"),
    (float, "float64"),
    (complex, "complex128"),
    (bytes, "string"),
    (str, "string"),
]


class Registered:
    """A class that is made an element type."""


class Unregistered:
    """A class that never is."""


@every_row
def test_each_element_type_says_name_size_and_counterparts(row: Row) -> None:
    meta = getattr(c10, row.name)
    assert isinstance(meta, c10.TypeMeta)
    assert meta.name == row.name
    assert meta.itemsize == row.itemsize
    assert meta.is_pod is True
    assert meta.numpy == np.dtype(row.numpy)
    assert isinstance(meta.numpy, np.dtype)
    assert meta.torch is row.torch
    assert meta.dlpack == row.dlpack
    assert bool(meta) is True
    assert row.name in repr(meta)


@every_row
def test_make_from_every_spelling(row: Row) -> None:
    singleton = getattr(c10, row.name)
    spellings = [singleton, row.name, np.dtype(row.numpy), row.numpy, np.dtype(row.numpy).type]
    spellings += [] if row.torch is None else [row.torch]
    for spelling in spellings:
        assert c10.TypeMeta.Make(spelling) is singleton, spelling
        assert singleton.Match(spelling) is True, spelling


@every_row
def test_match_refuses_every_other_type(row: Row) -> None:
    meta = getattr(c10, row.name)
    assert [other.name for other in ROWS if meta.Match(other.name)] == [row.name]
    assert [other.name for other in ROWS if meta.Match(other.numpy)] == [row.name]
    assert not meta.Match(c10.string)
    assert not meta.Match(c10.tensor)


@every_row
def test_both_wrappers_hold_each_element_type(row: Row) -> None:
    for dtype in [row.name, row.numpy, getattr(c10, row.name)]:
        zeros = at.zeros((2, 3), dtype=dtype)
        assert zeros.dtype() == getattr(c10, row.name)
        assert (zeros.itemsize(), zeros.nbytes()) == (row.itemsize, 6 * row.itemsize)
        assert zeros.numpy().dtype == np.dtype(row.numpy)
        tensor = caffe2.Tensor((2, 3), "cpu")
        assert tensor.mutable_data(dtype).dtype == np.dtype(row.numpy)
        assert tensor.IsType(row.name)
        assert (tensor.itemsize(), tensor.nbytes()) == (row.itemsize, 6 * row.itemsize)


def test_complex32_is_torchs_complex_half() -> None:
    meta = c10.complex32
    assert (meta.name, meta.itemsize, meta.is_pod) == ("complex32", 4, True)
    assert (meta.torch, meta.dlpack) == (torch.complex32, (5, 32, 1))
    assert c10.TypeMeta.Make(torch.complex32) is meta
    assert c10.TypeMeta.Make("complex32") is meta
    if hasattr(ml_dtypes, "complex32"):
        assert meta.numpy == np.dtype(ml_dtypes.complex32)


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"])
def test_sub_byte_types_of_dlpack_have_a_singleton(name: str) -> None:
    meta = getattr(c10, name)
    assert isinstance(meta, c10.TypeMeta)
    assert meta.name == name
    assert meta.is_pod is True


@pytest.mark.parametrize(("python_type", "name"), PYTHON_TYPES)
def test_python_types_name_element_types(python_type: type, name: str) -> None:
    assert c10.TypeMeta.Make(python_type) is getattr(c10, name)
    assert getattr(c10, name).Match(python_type) is True


def test_equal_types_have_equal_hashes() -> None:
    metas = [getattr(c10, row.name) for row in ROWS] + [c10.string, c10.tensor]
    assert len(set(metas)) == len(metas)
    assert c10.float32 == c10.TypeMeta.Make("float32")
    assert c10.float32 != c10.float64
    assert hash(c10.float32) == hash(c10.TypeMeta.Make(np.float32))


@pytest.mark.parametrize(
    "spelling",
    ["float32", "f4", torch.float32, np.float32, np.dtype("float32"), np.dtype("f4")],
    ids=repr,
)
def test_a_type_equals_every_spelling_that_make_takes(spelling: object) -> None:
    for meta in (c10.float32, at.zeros(1).dtype, at.zeros(1).dtype()):
        assert (meta == spelling) is True
        assert (spelling == meta) is True
        assert (meta != spelling) is False
        assert (spelling != meta) is False
    assert (c10.float64 == spelling) is False
    assert (spelling == c10.float64) is False


def test_types_equal_their_python_types_and_registered_classes() -> None:
    pairs = [
        (c10.bool, bool), (c10.int64, int), (c10.float64, float), (c10.complex128, complex),
        (c10.string, str), (c10.string, bytes), (c10.string, "string"), (c10.tensor, at.Tensor),
        (c10.TypeMeta.Register(dict), dict),
    ]  # fmt: skip
    for meta, cls in pairs:
        assert meta == cls
        assert cls == meta
        assert {other for other, _ in pairs if other == cls} == {meta}
    for meta, cls in ((c10.float32, float), (c10.int32, int)):
        assert meta != cls


@pytest.mark.parametrize(
    "other", [None, 3, 1.5, "no_such_type", "", object(), [], torch.quint8, np.dtype("M8[s]")]
)
def test_a_type_is_unequal_to_objects_that_make_refuses(other: object) -> None:
    assert (c10.float32 == other) is False
    assert (other == c10.float32) is False
    assert c10.float32 != other


def test_a_type_hashes_as_the_dtype_of_torch_does() -> None:
    code = """
import torch
from bridge import at, c10
from bridge.c10.type_meta import ROWS
x = at.zeros(1)
assert x.dtype in {torch.float32}
assert {torch.float32: 1}[x.dtype] == {x.dtype: 1}[torch.float32] == 1
assert all(hash(row) == hash(row.torch) for row in ROWS if row.torch is not None)
assert all(hash(row) == hash(row.name) for row in ROWS if row.torch is None)
"""
    assert run_python(code) == ""


def test_a_hash_stays_when_torch_is_imported() -> None:
    code = """
import sys
from bridge import at
x = at.zeros(1)
table = {x.dtype: "known"}
assert "torch" not in sys.modules
import torch
assert table[x.dtype] == table[at.ones(2).dtype] == "known"
assert at.ones(2, "float64").dtype in {torch.float64}
"""
    assert run_python(code) == ""


def test_the_package_takes_no_hash_before_torch_is_imported() -> None:
    code = """
import sys
import numpy as np
import bridge
from bridge import at, c10, caffe2
from bridge.c10.type_meta import ROWS
from bridge.caffe2 import workspace
workspace.FeedBlob("a", np.ones(3, np.float32))
workspace.DeserializeBlob("b", workspace.SerializeBlob("a"))
bridge.to_numpy(at.zeros(3)).sum()
repr(at.zeros(3, "int64"))
import torch
assert [row for row in ROWS if row.torch is not None and hash(row) != hash(row.torch)] == []
"""
    assert run_python(code) == ""


@pytest.mark.parametrize("row", [row for row in ROWS if row.torch is not None], ids=str)
def test_types_have_the_attributes_of_torch_dtypes(row: Row) -> None:
    meta, theirs = getattr(c10, row.name), row.torch
    for name in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
        assert getattr(meta, name) == getattr(theirs, name)
    assert meta.to_real() == theirs.to_real()
    try:
        expected = theirs.to_complex()
    except RuntimeError:
        with pytest.raises(c10.EnforceNotMet, match="complex"):
            meta.to_complex()
    else:
        # (bcomplex32, which bfloat16 has from torch 2.14 on, is no type of DLPack)
        assert meta.to_complex() == ("complex64" if row.name == "bfloat16" else expected)


@pytest.mark.parametrize("row", [row for row in ROWS if row.numpy is not None], ids=str)
def test_types_have_the_attributes_of_numpy_dtypes(row: Row) -> None:
    meta, theirs = getattr(c10, row.name), np.dtype(row.numpy)
    for name in (
        "kind", "byteorder", "char", "str", "name", "itemsize", "alignment", "type", "num", "names",
        "fields", "subdtype", "hasobject", "isnative", "shape", "ndim", "base", "metadata",
    ):  # fmt: skip
        assert getattr(meta, name) == getattr(theirs, name), name
    assert meta.newbyteorder("<") == theirs.newbyteorder("<")


def test_attributes_that_a_type_lacks_are_an_attribute_error() -> None:
    undefined = caffe2.Tensor([2], "cpu").dtype
    for name in ("kind", "str", "no_such_attribute"):
        assert not hasattr(undefined, name)
    assert (undefined.is_floating_point, undefined.is_complex, undefined.is_signed) == (False,) * 3
    assert c10.string.kind == "O"


def test_undefined_is_equal_to_itself_only() -> None:
    undefined = caffe2.Tensor([2], "cpu").dtype
    assert undefined == undefined()
    for other in (None, "float32", c10.float32, "", torch.float32, np.dtype("f4")):
        assert undefined != other
        assert other != undefined


def test_numpy_reads_the_dtype() -> None:
    for row in ROWS:
        meta = getattr(c10, row.name)
        if row.numpy is not None:
            assert np.dtype(meta) == meta.dtype == meta.numpy == meta
    # NumPy 2.2, the last one for Python 3.10, drops the reason
    with pytest.raises(TypeError, match=r"mutable_data|Cannot interpret"):
        np.dtype(caffe2.Tensor([2], "cpu").dtype)


@pytest.mark.parametrize(
    "text", ["no_such_type", "", "float33", ",", "(2,)f4", "f\ud800", "i4,f4", "O", "x" * 10_000]
)
def test_text_that_names_no_type_is_refused(text: str) -> None:
    with pytest.raises(c10.EnforceTypeError):
        c10.TypeMeta.Make(text)


@pytest.mark.parametrize("spelling", [3, 1.5, [], memoryview(bytearray(4)), object(), Unregistered])
def test_make_of_the_wrong_kind_of_argument(spelling: object) -> None:
    with pytest.raises(TypeError):
        c10.TypeMeta.Make(spelling)


@pytest.mark.parametrize(
    "dtype", [np.dtype("M8[s]"), np.dtype("m8[s]"), np.dtype([("a", "f4"), ("b", "i4")])], ids=str
)
def test_numpy_types_without_a_counterpart_are_refused(dtype: np.dtype) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError, BufferError)):
        c10.TypeMeta.Make(dtype)


@pytest.mark.parametrize(("attribute", "value"), [("name", "other"), ("itemsize", 8)])
def test_type_metas_are_immutable(attribute: str, value: object) -> None:
    with pytest.raises((AttributeError, TypeError)):
        setattr(c10.float32, attribute, value)
    assert (c10.float32.name, c10.float32.itemsize) == ("float32", 4)


@pytest.mark.parametrize("name", ["string", "tensor"])
def test_string_and_tensor_types_have_no_counterparts(name: str) -> None:
    meta = getattr(c10, name)
    assert isinstance(meta, c10.TypeMeta)
    assert meta.name == name
    assert meta.is_pod is False
    assert meta.dlpack is None
    assert meta.torch is None
    assert bool(meta) is True
    assert c10.TypeMeta.Make(meta) is meta


def test_the_undefined_type_is_false_and_matches_no_other() -> None:
    undefined = caffe2.Tensor((2, 3), "cpu").dtype()
    assert isinstance(undefined, c10.TypeMeta)
    assert bool(undefined) is False
    assert not undefined.Match("float32")
    assert not c10.float32.Match(undefined)
    assert c10.TypeMeta.Make(undefined) is undefined


def test_string_elements_are_bytes() -> None:
    tensor = caffe2.Tensor((3,), "cpu")
    elements = tensor.mutable_data(c10.string)
    assert len(elements) == 3
    elements[0] = b"one"
    elements[2] = b"\x00\xff"
    assert list(tensor.data()) == [b"one", b"", b"\x00\xff"]
    assert tensor.IsType(bytes)
    assert tensor.IsType(c10.string)
    assert not tensor.IsType("float32")
    assert all(type(element) is bytes for element in tensor.data(str))


def test_string_elements_refuse_values_that_are_not_strings() -> None:
    tensor = caffe2.Tensor((2,), "cpu")
    elements = tensor.mutable_data(c10.string)
    elements[0] = b"kept"
    with pytest.raises((TypeError, RuntimeError)):
        elements[0] = 3.5
    for broken in (["\ud800", "b"], ["a", "\udfff"]):
        with pytest.raises(c10.EnforceValueError, match="UTF-8"):
            elements[:] = broken
    assert elements[0] == b"kept"
    with pytest.raises(IndexError):
        elements[2] = b"outside"


def test_tensor_elements_are_tensors() -> None:
    tensor = caffe2.Tensor((2,), "cpu")
    elements = tensor.mutable_data(c10.tensor)
    inner = caffe2.Tensor((3,), [1.0, 2.0, 3.0])
    elements[1] = inner
    found = tensor.data(c10.tensor)[1]
    assert isinstance(found, caffe2.Tensor | at.Tensor)
    assert found.sizes() == (3,)
    assert found.numpy().tolist() == [1.0, 2.0, 3.0]
    assert tensor.IsType(c10.tensor)


def test_register_makes_a_class_an_element_type() -> None:
    meta = c10.TypeMeta.Register(Registered)
    assert isinstance(meta, c10.TypeMeta)
    assert meta.is_pod is False
    assert meta.dlpack is None
    assert meta.torch is None
    assert "Registered" in meta.name
    assert c10.TypeMeta.Make(Registered) is meta
    assert meta.Match(Registered)
    assert not meta.Match(c10.string)
    assert c10.TypeMeta.Register(Registered) is meta


def test_two_threads_that_register_a_class_at_once_get_one_type() -> None:
    meeting = threading.Barrier(2, timeout=60)

    class Meets(type):
        @property
        def dtype(cls) -> None:
            """Is read by the look-up, which finds nothing in both threads."""
            meeting.wait()

    cls = Meets("Late", (), {})
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(c10.TypeMeta.Register, (cls, cls))
    assert first is second is c10.TypeMeta.Make(cls)


def test_elements_of_a_registered_class_are_kept_as_objects() -> None:
    meta = c10.TypeMeta.Register(Registered)
    tensor = caffe2.Tensor((2,), "cpu")
    elements = tensor.mutable_data(meta)
    element = Registered()
    elements[1] = element
    assert tensor.data(Registered)[1] is element
    assert tensor.IsType(Registered)
    assert tensor.dtype() == meta
    with pytest.raises(c10.EnforceNotMet):
        tensor.data("float32")


@pytest.mark.parametrize("argument", [3, "Registered", None, Registered()])
def test_register_takes_classes_only(argument: object) -> None:
    with pytest.raises(TypeError):
        c10.TypeMeta.Register(argument)


@pytest.mark.parametrize("cls", [bool, int, float, str, bytes, np.float32, np.bool_, np.str_])
def test_registering_a_class_that_names_a_type_returns_that_type(cls: type) -> None:
    named = c10.TypeMeta.Make(np.dtype(cls))
    assert c10.TypeMeta.Register(cls) is named
    assert c10.TypeMeta.Make(cls) is named


def test_registering_an_unused_scalar_type_of_numpy_returns_its_type() -> None:
    code = """
import ml_dtypes
import numpy as np
from bridge import c10
for cls in (np.float32, np.int16, np.bytes_, ml_dtypes.bfloat16):
    assert c10.TypeMeta.Register(cls) is c10.TypeMeta.Make(np.dtype(cls)), cls
"""
    run_python(code)


class Sloppy(type):
    """A metaclass whose classes equal everything, and have no hash."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(cls, other: object) -> bool:
        return True


class SloppyAndHashed(Sloppy):
    """One whose classes have one hash for all."""

    def __hash__(cls) -> int:
        return 0


@pytest.mark.parametrize("metaclass", [type, Sloppy, SloppyAndHashed])
def test_registered_classes_are_told_apart_whatever_their_metaclass(metaclass: type) -> None:
    first, second = (metaclass("Same", (), {"dtype": np.dtype("f4")}) for _ in range(2))
    for cls in (first, second):
        with pytest.raises(c10.EnforceTypeError):
            c10.TypeMeta.Make(cls)
    metas = [c10.TypeMeta.Register(cls) for cls in (first, second)]
    assert metas[0] is not metas[1]
    assert [c10.TypeMeta.Make(cls) for cls in (first, second)] == metas
    assert (metas[0].Match(second), metas[1].Match(second)) == (False, True)
    tensor = caffe2.empty((2,), metas[1])
    assert [type(element) is second for element in tensor.data()] == [True, True]


class FailsAtTheThird:
    """A class of which two objects may be made."""

    made = 0

    def __init__(self) -> None:
        FailsAtTheThird.made += 1
        if FailsAtTheThird.made > 2:
            raise OSError("no third one")

    def __del__(self) -> None:
        FailsAtTheThird.made -= 1


def test_a_constructor_that_raises_half_way_leaves_the_tensor_as_it_was() -> None:
    meta = c10.TypeMeta.Register(FailsAtTheThird)
    tensor = caffe2.empty((2,), meta)
    kept = list(tensor.data())
    for grow in (
        lambda: caffe2.empty((5,), meta),
        lambda: tensor.Extend(3),
        lambda: tensor.ReserveSpace(7),
    ):
        with pytest.raises(OSError, match="no third one"):
            grow()
        assert tensor.sizes() == (2,)
        assert [a is b for a, b in zip(tensor.data(), kept, strict=True)] == [True, True]
        gc.collect()
        assert FailsAtTheThird.made == 2


def test_element_types_are_read_and_given_by_dlpacks_protocol() -> None:
    class Float16:
        def __dlpack_data_type__(self) -> tuple[int, int, int]:
            return (2, 16, 1)

    class Vector(Float16):
        def __dlpack_data_type__(self) -> tuple[int, int, int]:
            return (2, 16, 4)

    assert c10.TypeMeta.Make(Float16()) is c10.float16
    assert c10.float16.__dlpack_data_type__() == (2, 16, 1)

    class Short(Float16):
        def __dlpack_data_type__(self) -> tuple[int, int, int]:
            return (2, 16)  # type: ignore[return-value]

    for other in (Vector(), Short()):
        with pytest.raises(c10.EnforceNotMet, match="does not name an element type"):
            c10.TypeMeta.Make(other)
    with pytest.raises(c10.EnforceNotMet, match="string"):
        c10.string.__dlpack_data_type__()


def test_c10_has_each_type_and_kind_of_device_by_its_name() -> None:
    for row in ROWS:
        assert getattr(c10, row.name).name == row.name
    for kind in c10.DeviceType:
        assert getattr(c10, kind.name) is kind
