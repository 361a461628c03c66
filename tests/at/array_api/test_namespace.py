# SPDX-License-Identifier: Apache-2.0
"""The namespace as the array API standard, 2024.12, describes it: names, signatures, types."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10

xp: Any = at.zeros(1).__array_namespace__()

# The names of the standard, by the page of its specification.
NAMES = {
    "constants": "e inf nan newaxis pi",
    "creation": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid "
    "ones ones_like tril triu zeros zeros_like",
    "data types": "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 "
    "complex64 complex128",
    "data type functions": "astype can_cast finfo iinfo isdtype result_type",
    "elementwise": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and "
    "bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj "
    "copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag "
    "isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not "
    "logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow "
    "real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc",
    "linear algebra": "matmul matrix_transpose tensordot vecdot",
    "manipulation": "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims "
    "repeat reshape roll squeeze stack tile unstack",
    "searching": "argmax argmin count_nonzero nonzero searchsorted where",
    "indexing": "take take_along_axis",
    "sets": "unique_all unique_counts unique_inverse unique_values",
    "sorting": "argsort sort",
    "statistics": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "utility": "all any diff",
    "inspection": "__array_namespace_info__ __array_api_version__",
}
EXTENSIONS = {
    "linalg": "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power "
    "matrix_rank matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot "
    "vector_norm",
    "fft": "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft fftfreq rfftfreq fftshift "
    "ifftshift",
}
ARRAY = (
    "dtype device mT ndim shape size T __abs__ __add__ __and__ __array_namespace__ __bool__ "
    "__complex__ __dlpack__ __dlpack_device__ __eq__ __float__ __floordiv__ __ge__ __getitem__ "
    "__gt__ __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ "
    "__ne__ __neg__ __or__ __pos__ __pow__ __rshift__ __setitem__ __sub__ __truediv__ __xor__ "
    "to_device"
)


@pytest.mark.parametrize("page", NAMES)
def test_namespace_has_the_names_of_the_standard(page: str) -> None:
    assert [name for name in NAMES[page].split() if not hasattr(xp, name)] == []


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_namespace_has_the_extensions_of_the_standard(extension: str) -> None:
    names = EXTENSIONS[extension].split()
    assert [name for name in names if not hasattr(getattr(xp, extension), name)] == []


def test_arrays_have_the_names_of_the_standard() -> None:
    x = xp.ones((1, 1))
    assert [name for name in ARRAY.split() if not hasattr(x, name)] == []


def test_every_function_has_a_docstring_and_a_signature() -> None:
    for module in (xp, xp.linalg, xp.fft):
        for name, one in vars(module).items():
            if callable(one) and not name.startswith("_") and not isinstance(one, c10.TypeMeta):
                assert one.__doc__, name
                assert one.__name__ == name
                kinds = {one.kind for one in inspect.signature(one).parameters.values()}
                assert inspect.Parameter.VAR_KEYWORD not in kinds, name


def test_signatures_have_the_names_of_the_standard() -> None:
    assert list(inspect.signature(xp.sum).parameters) == ["x", "axis", "dtype", "keepdims"]
    assert list(inspect.signature(xp.clip).parameters) == ["x", "min", "max"]
    assert list(inspect.signature(xp.fft.fft).parameters) == ["x", "n", "axis", "norm"]
    with pytest.raises(TypeError):
        xp.sum(xp.ones(2), 0)
    with pytest.raises(TypeError):
        xp.add(x1=xp.ones(2), x2=xp.ones(2))


@pytest.mark.parametrize("version", [None, "2021.12", "2022.12", "2023.12", "2024.12"])
def test_arrays_give_the_namespace_for_each_supported_version(version: str | None) -> None:
    assert xp.ones(1).__array_namespace__(api_version=version) is xp
    assert xp.__array_api_version__ == "2024.12"


@pytest.mark.parametrize("version", ["2020.12", "2030.12", "", 2024])
def test_unknown_versions_are_refused(version: Any) -> None:
    with pytest.raises(ValueError, match=r"2024\.12"):
        xp.ones(1).__array_namespace__(api_version=version)


class TestInfo:
    info = xp.__array_namespace_info__()

    def test_info_states_the_capabilities(self) -> None:
        assert self.info.capabilities()["boolean indexing"] is True
        assert self.info.capabilities()["data-dependent shapes"] is True
        assert xp.ones((1,) * 64).ndim == self.info.capabilities()["max dimensions"]

    def test_info_lists_the_devices(self) -> None:
        assert self.info.default_device() in self.info.devices()
        assert len(self.info.devices()) == 1 + torch.cuda.device_count()
        assert xp.empty(1).device == self.info.default_device()

    def test_info_names_the_default_types(self) -> None:
        defaults = self.info.default_dtypes()
        assert defaults["real floating"] == xp.asarray(1.0).dtype == xp.zeros(1).dtype
        assert defaults["complex floating"] == xp.asarray(1j).dtype
        assert defaults["integral"] == xp.asarray(1).dtype == xp.arange(3).dtype
        assert defaults["indexing"] == xp.argsort(xp.ones(3)).dtype

    def test_info_lists_the_types_of_a_kind_and_refuses_unknown_kinds(self) -> None:
        assert self.info.dtypes()["float32"] is xp.float32
        assert set(self.info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}
        assert set(self.info.dtypes(kind=("bool", "complex floating"))) == {
            "bool", "complex64", "complex128",
        }  # fmt: skip
        with pytest.raises(ValueError, match="kind"):
            self.info.dtypes(kind="float")


NAMES_OF_TYPES = NAMES["data types"].split()


@pytest.mark.parametrize("a", NAMES_OF_TYPES)
def test_types_promote_as_the_standard_says(a: str) -> None:
    """NumPy promotes as the standard where that has a rule, but for uint64 with signed integers."""
    for b in NAMES_OF_TYPES:
        kinds = {np.dtype(a).kind, np.dtype(b).kind}
        ruled = kinds <= {"i", "u"} or kinds <= {"f", "c"} or kinds == {"b"}
        if ruled and not (kinds == {"i", "u"} and "uint64" in (a, b)):
            expected = np.result_type(a, b).name
            assert xp.result_type(getattr(xp, a), getattr(xp, b)).name == expected
            assert xp.can_cast(getattr(xp, a), getattr(xp, b)) is (expected == b)


def test_scalars_take_the_type_of_the_array() -> None:
    for dtype in (xp.int8, xp.uint8, xp.float32, xp.float64, xp.complex64):
        x = xp.asarray([1, 2], dtype=dtype)
        assert xp.add(x, 1).dtype == xp.add(1, x).dtype == (x + 1).dtype == dtype
        assert xp.result_type(x, 1) == dtype
    assert xp.add(xp.ones(2), 1j).dtype == xp.complex64
    with pytest.raises(TypeError):
        xp.add(1, 2)
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type(1, 2.0)


def test_arrays_without_dimensions_promote_as_others() -> None:
    """torch counts them as scalars, which take the type of the array beside them."""
    small, wide = xp.asarray([1, 2], dtype=xp.int8), xp.asarray(300, dtype=xp.int16)
    assert xp.add(small, wide).dtype == xp.int16
    assert xp.add(small, wide).tolist() == [301, 302]
    assert xp.less(small[:1] * 0 - 1, xp.asarray(1, dtype=xp.uint8)).tolist() == [True]
    assert xp.where(xp.asarray([True]), small[0], wide).dtype == xp.int16
    assert xp.concat([small, xp.reshape(wide, (1,))]).tolist() == [1, 2, 300]


def test_isdtype_knows_the_kinds_of_the_standard_and_refuses_others() -> None:
    assert xp.isdtype(xp.float32, "real floating")
    assert xp.isdtype(xp.int8, ("bool", "integral"))
    assert xp.isdtype(xp.int8, xp.int8)
    assert not xp.isdtype(xp.uint8, "signed integer")
    with pytest.raises(ValueError, match="kind"):
        xp.isdtype(xp.int8, "integer")
    with pytest.raises(TypeError):
        xp.isdtype(xp.int8, (("bool",),))


def test_finfo_and_iinfo_give_the_limits_that_numpy_gives() -> None:
    for name in ("float32", "float64"):
        mine, numpy = xp.finfo(getattr(xp, name)), np.finfo(name)
        for field in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(mine, field) == getattr(numpy, field)
        assert mine.dtype == name
    assert xp.finfo(xp.ones(1, dtype=xp.complex128)).dtype is xp.float64
    for name in NAMES_OF_TYPES[1:9]:
        mine, limits = xp.iinfo(getattr(xp, name)), np.iinfo(name)
        assert (mine.bits, mine.max, mine.min) == (limits.bits, limits.max, limits.min)
    for call in (lambda: xp.finfo(xp.int8), lambda: xp.iinfo(xp.float32)):
        with pytest.raises(TypeError):
            call()


class TestAsarray:
    def test_asarray_shares_the_memory_of_arrays_tensors_and_buffers(self) -> None:
        array, tensor = np.arange(3.0), torch.arange(3)
        for source in (array, tensor, at.arange(3), memoryview(array)):
            assert bridge.shares_memory(xp.asarray(source), source)
            assert bridge.shares_memory(xp.asarray(source, copy=False), source)
            assert not bridge.shares_memory(xp.asarray(source, copy=True), source)

    def test_asarray_with_copy_false_refuses_where_a_copy_is_needed(self) -> None:
        for source in ([1, 2], 1.0):
            with pytest.raises(ValueError, match="copy=False"):
                xp.asarray(source, copy=False)
        for source in (np.ones(2), at.ones(2)):
            with pytest.raises(ValueError, match="copy=False"):
                xp.asarray(source, dtype=xp.int8, copy=False)

    def test_asarray_takes_nested_sequences_with_arrays_in_them(self) -> None:
        x = xp.asarray([xp.asarray(1.5), 2, np.float32(3.5)])
        assert x.tolist() == [1.5, 2, 3.5]
        assert xp.asarray(((1, 2), (3, 4))).shape == (2, 2)

    def test_asarray_infers_the_type_or_takes_it(self) -> None:
        assert xp.asarray([True]).dtype == xp.bool
        assert xp.asarray([1, 2.5]).dtype == xp.float32
        assert xp.asarray([1], dtype=xp.complex128).dtype == xp.complex128


def test_results_are_on_the_memory_of_arguments_where_they_are_views() -> None:
    x = xp.reshape(xp.arange(6), (2, 3))
    views = [
        xp.permute_dims(x, (1, 0)), xp.expand_dims(x, axis=1), xp.squeeze(x[:1], axis=0),
        xp.reshape(x, (6,), copy=False), xp.broadcast_to(x, (4, 2, 3)), xp.moveaxis(x, 0, 1),
        xp.matrix_transpose(x), *xp.unstack(x), x.mT, x.T,
    ]  # fmt: skip
    for view in views:
        assert isinstance(view, at.Tensor)
        assert bridge.shares_memory(view, x)
    assert not bridge.shares_memory(xp.reshape(x, (6,), copy=True), x)
    with pytest.raises(ValueError):
        xp.reshape(x.T, (6,), copy=False)


def test_reversed_and_read_only_arrays_are_read() -> None:
    x = bridge.from_dlpack(np.arange(4.0))[::-1]
    assert xp.cumulative_sum(x).tolist() == [3, 5, 6, 6]
    fixed = bridge.from_dlpack(b"\x01\x02")
    assert xp.sum(fixed).item() == 3
    assert xp.add(fixed, fixed).tolist() == [2, 4]


def test_sets_count_each_nan() -> None:
    x = xp.asarray([math.nan, 1.0, math.nan, 1.0])
    found = xp.unique_all(x)
    assert found.values.tolist()[0] == 1.0
    assert found.counts.tolist() == [2, 1, 1]
    assert found.indices.tolist() == [1, 0, 2]
    assert found.inverse_indices.tolist() == [1, 0, 2, 0]
    assert xp.unique_values(xp.asarray([2j, 1, 2j])).shape == (2,)


def test_to_device_returns_the_array_if_it_is_there() -> None:
    x = xp.ones(2)
    assert x.to_device("cpu") is x
    assert x.to_device(x.device) is x
    assert xp.asarray(x, device=x.device) is x
    with pytest.raises(ValueError, match="stream"):
        x.to_device("cpu", stream=1)


ERRORS = [
    ("sum", lambda x: xp.sum(x, axis=2), IndexError),
    ("sum twice", lambda x: xp.sum(x, axis=(0, 0)), IndexError),
    ("squeeze", lambda x: xp.squeeze(x, axis=0), ValueError),
    ("squeeze of no axis", lambda x: xp.squeeze(x, axis=4), IndexError),
    ("expand_dims", lambda x: xp.expand_dims(x, axis=5), IndexError),
    ("expand_dims twice", lambda x: xp.expand_dims(x, axis=(0, 0)), ValueError),
    ("nonzero", lambda x: xp.nonzero(x[0, 0]), ValueError),
    ("take", lambda x: xp.take(x, xp.asarray([0])), ValueError),
    ("cumulative_sum", xp.cumulative_sum, ValueError),
    ("cumulative_prod of nothing", lambda x: xp.cumulative_prod(x[0, 0]), ValueError),
    ("meshgrid", lambda x: xp.meshgrid(x[0], indexing="yx"), ValueError),
    ("vecdot", lambda x: xp.vecdot(x, x[:, :2]), ValueError),
    ("cross", lambda x: xp.linalg.cross(x[:, :2], x[:, :2]), ValueError),
    ("matrix_transpose", lambda x: xp.matrix_transpose(x[0]), ValueError),
    ("matrix_rank", lambda x: xp.linalg.matrix_rank(x[0]), ValueError),
    ("broadcast_shapes", lambda _: xp.broadcast_shapes((2,), (3,)), ValueError),
    ("moveaxis", lambda x: xp.moveaxis(x, (0, 1), (0,)), ValueError),
]


@pytest.mark.parametrize(("call", "error"), [row[1:] for row in ERRORS], ids=[r[0] for r in ERRORS])
def test_wrong_arguments_are_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(xp.ones((2, 3)))
