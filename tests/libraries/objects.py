# SPDX-License-Identifier: Apache-2.0
"""Objects of each library made of NumPy arrays, for `test_objects`, and what they hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.helpers import alone

# tinygrad looks for a compiler otherwise
os.environ.setdefault("DEV", "PYTHON")

TYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2"),
)


@dataclass(frozen=True)
class Kind:
    """One kind of object: how it is made of an array, and how the library itself reads it.

    `make` raises what it likes if the library has no such object. `copied`: a plain float32 one
    has no memory that can be shared.
    """

    name: str
    make: Callable[[Any], Any]
    read: Callable[[Any], Any] = np.asarray
    copied: bool = False


def _numpy(x: Any) -> Any:
    return x.numpy()


def _to_numpy(x: Any) -> Any:
    return x.to_numpy()


def _row_major(array: Any) -> Any:
    return np.array(array, order="C")


def _paddle() -> Iterator[Kind]:
    import paddle

    def read(x: Any) -> Any:
        return x.numpy().view(ml_dtypes.bfloat16) if x.dtype == paddle.bfloat16 else x.numpy()

    yield Kind("tensor", paddle.to_tensor, read)
    yield Kind("transposed", lambda a: paddle.to_tensor(_row_major(a.T)).T, read)


def _mlx() -> Iterator[Kind]:
    import mlx.core

    def read(x: Any) -> Any:
        bytes_ = x.dtype == mlx.core.bfloat16
        array = np.array(x.view(mlx.core.uint16) if bytes_ else x)
        return array.view(ml_dtypes.bfloat16) if bytes_ else array

    yield Kind("array", mlx.core.array, read)
    yield Kind("transposed", lambda a: mlx.core.array(_row_major(a.T)).T, read)


def _onnxruntime() -> Iterator[Kind]:
    from onnxruntime import OrtValue

    yield Kind("value", lambda a: OrtValue.ortvalue_from_numpy(_row_major(a)), _numpy)


def _openvino() -> Iterator[Kind]:
    import openvino

    yield Kind("tensor", openvino.Tensor, lambda x: x.data)
    yield Kind("of its memory", lambda a: openvino.Tensor(a, shared_memory=True), lambda x: x.data)


def _warp() -> Iterator[Kind]:
    import warp

    warp.config.quiet = True
    yield Kind("array", lambda a: warp.from_numpy(a, device="cpu"), _numpy)
    yield Kind("strided", lambda a: warp.array(a, device="cpu", copy=False), _numpy)


def _tvm_ffi() -> Iterator[Kind]:
    import tvm_ffi

    yield Kind("tensor", tvm_ffi.from_dlpack, np.from_dlpack)


def _pyarrow() -> Iterator[Kind]:
    import pyarrow as pa

    def of_lists(array: Any) -> Any:
        return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])

    def plain(x: Any) -> Any:
        return x.to_numpy(zero_copy_only=False)

    def shaped(x: Any) -> Any:
        return plain(x.storage.flatten()).reshape(len(x), *x.type.shape)

    yield Kind("array", pa.array, plain)
    yield Kind("slice", lambda a: pa.array(np.concatenate([a, a]))[1:-1], plain)
    yield Kind("chunk", lambda a: pa.chunked_array([pa.array(a)]), lambda x: x.to_numpy())
    yield Kind("lists", of_lists, lambda x: np.stack(plain(x)))
    yield Kind("shaped", pa.FixedShapeTensorArray.from_numpy_ndarray, shaped)
    yield Kind("tensor", pa.Tensor.from_numpy, _to_numpy)


def _polars() -> Iterator[Kind]:
    import polars

    yield Kind("series", polars.Series, _to_numpy)
    yield Kind("frame", lambda a: polars.DataFrame(_row_major(a)), _to_numpy)


def _pandas() -> Iterator[Kind]:
    import pandas

    yield Kind("series", pandas.Series, _to_numpy)
    yield Kind("index", pandas.Index, _to_numpy)
    yield Kind("frame", pandas.DataFrame, _to_numpy)
    yield Kind("extension", pandas.array, lambda x: x.to_numpy(dtype=_plain_type(x.dtype)))


def _plain_type(dtype: Any) -> Any:
    return getattr(dtype, "numpy_dtype", dtype)


def _duckdb() -> Iterator[Kind]:
    import duckdb
    import pyarrow

    def query(array: Any) -> Any:
        table = pyarrow.table({"x": pyarrow.array(array)})
        return duckdb.from_arrow(table)

    yield Kind("column", lambda a: query(a).to_arrow_table()["x"], _to_numpy)


def _arro3() -> Iterator[Kind]:
    import pyarrow
    from arro3.core import Array, ChunkedArray

    yield Kind("array", lambda a: Array.from_arrow(pyarrow.array(a)), _to_numpy)
    yield Kind("chunk", lambda a: ChunkedArray([Array.from_arrow(pyarrow.array(a))]), _to_numpy)


def _nanoarrow() -> Iterator[Kind]:
    import nanoarrow
    import pyarrow

    def read(x: Any) -> Any:
        return pyarrow.array(nanoarrow.c_array(x)).to_numpy(zero_copy_only=False)

    yield Kind("array", lambda a: nanoarrow.Array(pyarrow.array(a)), read)
    yield Kind("C array", lambda a: nanoarrow.c_array(pyarrow.array(a)), read)


def _awkward() -> Iterator[Kind]:
    import awkward

    yield Kind("array", awkward.from_numpy, awkward.to_numpy)
    yield Kind("list", lambda a: awkward.Array(a.tolist()), awkward.to_numpy)


def _tinygrad() -> Iterator[Kind]:
    import tinygrad

    def make(array: Any) -> Any:
        if array.ndim == 0 or not array.dtype.isnative or array.dtype.kind == "V":
            raise TypeError("a constant; or numbers that tinygrad misreads, or cannot fill in")
        return tinygrad.Tensor(array).realize()

    yield Kind("tensor", make, _numpy)


def _mindspore() -> Iterator[Kind]:
    import mindspore

    def read(x: Any) -> Any:
        if x.dtype != mindspore.bfloat16:
            return x.asnumpy()
        return x.astype(mindspore.float32).asnumpy().astype(ml_dtypes.bfloat16)

    yield Kind("tensor", mindspore.Tensor, read)


def _taichi() -> Iterator[Kind]:
    import taichi

    taichi.init(arch=taichi.cpu, log_level=taichi.ERROR)

    def ndarray(array: Any) -> Any:
        name = {"f": "f", "i": "i", "u": "u"}[array.dtype.kind] + str(array.dtype.itemsize * 8)
        x = taichi.ndarray(getattr(taichi, name), shape=array.shape)
        x.from_numpy(_row_major(array))
        return x

    yield Kind("ndarray", ndarray, _to_numpy, copied=True)


def _xarray() -> Iterator[Kind]:
    import xarray

    yield Kind("array", xarray.DataArray, _to_numpy)
    yield Kind("variable", lambda a: xarray.Variable("abc"[: a.ndim], a), _to_numpy)


def _dask() -> Iterator[Kind]:
    import dask.array

    yield Kind("array", dask.array.from_array, copied=True)


def _zarr() -> Iterator[Kind]:
    import zarr

    yield Kind("array", zarr.array, lambda x: np.asarray(x[...]), copied=True)


def _h5py() -> Iterator[Kind]:
    import h5py

    def dataset(array: Any) -> Any:
        file = h5py.File.in_memory() if hasattr(h5py.File, "in_memory") else None
        file = file or h5py.File("x", "w", driver="core", backing_store=False)
        return file.create_dataset("x", data=array)

    yield Kind("dataset", dataset, lambda x: x[()], copied=True)


def _blosc2() -> Iterator[Kind]:
    import blosc2

    yield Kind("array", lambda a: blosc2.asarray(_row_major(a)), lambda x: x[()], copied=True)


def _astropy() -> Iterator[Kind]:
    from astropy import units
    from astropy.table import Column

    def quantity(array: Any) -> Any:
        return units.Quantity(array, units.m, copy=False, dtype=array.dtype)

    yield Kind("quantity", quantity, lambda x: x.value)
    yield Kind("column", lambda a: Column(a, copy=False))


def _jax() -> Iterator[Kind]:
    import jax

    yield Kind("array", jax.numpy.asarray)


def _tensorflow() -> Iterator[Kind]:
    import tensorflow as tf

    yield Kind("tensor", tf.constant, _numpy)
    yield Kind("variable", tf.Variable, _numpy, copied=False)


# Library: the module to import, and its kinds of objects.
LIBRARIES: dict[str, tuple[str, Callable[[], Iterator[Kind]]]] = {
    "arro3": ("arro3.core", _arro3),
    "astropy": ("astropy.table", _astropy),
    "awkward": ("awkward", _awkward),
    "blosc2": ("blosc2", _blosc2),
    "dask": ("dask.array", _dask),
    "duckdb": ("duckdb", _duckdb),
    "h5py": ("h5py", _h5py),
    "jax": ("jax", _jax),
    "mindspore": ("mindspore", _mindspore),
    "mlx": ("mlx.core", _mlx),
    "nanoarrow": ("nanoarrow", _nanoarrow),
    "onnxruntime": ("onnxruntime", _onnxruntime),
    "openvino": ("openvino", _openvino),
    "paddle": ("paddle", _paddle),
    "pandas": ("pandas", _pandas),
    "polars": ("polars", _polars),
    "pyarrow": ("pyarrow", _pyarrow),
    "taichi": ("taichi", _taichi),
    "tensorflow": ("tensorflow", _tensorflow),
    "tinygrad": ("tinygrad", _tinygrad),
    "tvm_ffi": ("tvm_ffi", _tvm_ffi),
    "warp": ("warp", _warp),
    "xarray": ("xarray", _xarray),
    "zarr": ("zarr", _zarr),
}


def kinds(library: str) -> list[Kind]:
    """Return the kinds of objects of a library; skip the test if it is not installed."""
    module, make = LIBRARIES[library]
    alone.importorskip(module)
    return list(make())


def reader(library: str) -> Callable[[Any], Any]:
    """Return how a library itself reads what ``bridge.convert(x, library)`` returns."""
    by_name = {kind.name: kind.read for kind in kinds(library)}
    if library == "pyarrow":
        return lambda x: by_name["shaped" if hasattr(x, "storage") else "array"](x)
    return next(iter(by_name.values()))


# The libraries that tensors go out to, with their readers.
READERS = dict.fromkeys(
    (
        *("awkward", "jax", "mindspore", "mlx", "onnxruntime", "openvino", "paddle", "pandas"),
        *("polars", "pyarrow", "tensorflow", "tinygrad", "tvm_ffi", "warp"),
    ),
    reader,
)


def numbers(dtype: str, sizes: tuple[int, ...]) -> Any:
    """Return a new array of small numbers."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    return (np.arange(int(np.prod(sizes))) % 5).reshape(sizes).astype(kind)


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _misaligned(array: Any) -> Any:
    room = np.zeros(array.nbytes + 1, np.uint8)
    room[1:] = array.view(np.uint8)
    return room[1:].view(array.dtype)


LAYOUTS: dict[str, Callable[[str], Any]] = {
    "plain": lambda t: numbers(t, (6,)),
    "rows": lambda t: numbers(t, (2, 3)),
    "cube": lambda t: numbers(t, (2, 1, 3)),
    "scalar": lambda t: numbers(t, ()),
    "empty": lambda t: numbers(t, (0,)),
    "empty rows": lambda t: numbers(t, (2, 0)),
    "transposed": lambda t: numbers(t, (3, 2)).T,
    "reversed": lambda t: numbers(t, (6,))[::-1],
    "every other": lambda t: numbers(t, (12,))[::2],
    "with an offset": lambda t: numbers(t, (7,))[1:],
    "broadcast": lambda t: np.broadcast_to(numbers(t, (3,)), (2, 3)),
    "read-only": lambda t: _frozen(numbers(t, (6,))),
    "misaligned": lambda t: _misaligned(numbers(t, (6,))),
    "foreign byte order": lambda t: numbers(t, (6,)).astype(numbers(t, ()).dtype.newbyteorder()),
}
