# SPDX-License-Identifier: Apache-2.0
"""Columns and frames of pandas, Polars, xarray and Awkward: shared, copied, nulls, strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridge
from bridge.caffe2 import workspace


def copied(x: Any) -> bool:
    """Return whether `asarray` copies, and check that all who are asked say the same."""
    with bridge.audit() as log:
        y = bridge.asarray(x)
        bridge.from_dlpack(x)
    assert log.records[0].copied == log.records[1].copied
    if log.records[0].copied:
        assert log.copied_bytes == 2 * y.nbytes()
        with pytest.raises(BufferError):
            bridge.from_dlpack(x, copy=False)
        with bridge.no_copy(), pytest.raises(BufferError):
            bridge.to_numpy(x)
        return True
    assert bridge.from_dlpack(x, copy=False).data_ptr() == y.data_ptr()
    return False


@pytest.mark.parametrize("dtype", ["float64", "Int64", "Float32", "boolean", "bool", "int8"])
def test_pandas_columns_are_shared(dtype: str) -> None:
    pd = pytest.importorskip("pandas")
    column = pd.Series([1, 0, 1], dtype=dtype)
    assert not copied(column)
    assert bridge.to_torch(column).tolist() == [1, 0, 1]
    assert bridge.asarray(column.array).tolist() == [1, 0, 1]


def test_pandas_index_is_read_only() -> None:
    pd = pytest.importorskip("pandas")
    index = pd.Index([1, 2])
    assert bridge.from_dlpack(index).readonly
    assert bridge.to_torch(index).tolist() == [1, 2]


def test_pandas_frames_of_one_block_are_shared_and_others_copied() -> None:
    pd = pytest.importorskip("pandas")
    held = np.arange(4.0).reshape(2, 2)
    assert not copied(pd.DataFrame(held, copy=False))
    mixed = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    assert copied(mixed)
    assert bridge.to_torch(mixed).tolist() == [[1, 3], [2, 4]]
    workspace.FeedBlob("frame", mixed)
    assert workspace.FetchBlob("frame").tolist() == [[1, 3], [2, 4]]


def test_pandas_columns_on_arrow_are_shared_read_only() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    column = pd.Series([1, 2], dtype="int64[pyarrow]")
    assert not copied(column)
    assert bridge.asarray(column).readonly
    assert copied(pd.Series([True, False], dtype="bool[pyarrow]"))


@pytest.mark.parametrize(
    "dtype", ["Int64", "boolean", "Float64", "category", "int64[pyarrow]", "bool[pyarrow]"]
)
def test_pandas_nulls_are_refused(dtype: str) -> None:
    pd = pytest.importorskip("pandas")
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    column = pd.Series([1, None, None], dtype=dtype)
    for call in (bridge.asarray, bridge.from_dlpack, bridge.to_torch):
        with pytest.raises(BufferError, match=r"2 nulls.*fillna"):
            call(column)
    with pytest.raises(BufferError, match=r"2 nulls.*fillna"):
        bridge.asarray(pd.DataFrame({"a": column}))


def test_pandas_columns_of_times_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(BufferError, match="times"):
        bridge.asarray(pd.Series(pd.to_datetime(["2020-01-01"])))


def test_pandas_frames_of_masked_columns_are_copied() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [True, False]})
    assert copied(frame)
    assert bridge.asarray(frame).tolist() == [[1, 1], [2, 0]]
    assert bridge.asarray(frame).dtype() == "int64"
    with pytest.raises(BufferError, match=r"no common type.*select_dtypes"):
        bridge.asarray(pd.DataFrame({"a": ["x"], "b": [1]}))


def test_pandas_errors_name_the_call() -> None:
    pd = pytest.importorskip("pandas")
    times = pd.Series(pd.to_datetime(["2020-01-01"]))
    for x in (times, times.dt.tz_localize("UTC"), pd.DatetimeIndex(times)):
        with pytest.raises(BufferError, match=r"astype\('int64'\)"):
            bridge.from_dlpack(x)
        assert bridge.from_dlpack(x.astype("int64")).numel() == 1
    for x in (pd.Series([object()]), pd.Series(pd.interval_range(0, 2)), pd.Series(["a"])):
        with pytest.raises(BufferError, match=r"not numbers.*astype"):
            bridge.from_dlpack(x)


def test_a_lazy_frame_names_the_call_that_computes_it() -> None:
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"collect\(\)"):
        bridge.from_dlpack(pl.LazyFrame({"a": [1]}))


def test_explain_of_a_frame_that_is_copied_has_no_address() -> None:
    pd = pytest.importorskip("pandas")
    found = bridge.explain(pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]}))
    assert (found.sizes, found.nbytes, found.address) == ([2, 2], 32, None)


def test_polars_columns_are_shared_and_frames_copied() -> None:
    pl = pytest.importorskip("polars")
    column = pl.Series([1, 2, 3])
    assert not copied(column)
    assert bridge.from_dlpack(column).readonly
    assert copied(pl.Series([True, False]))
    with pytest.raises(BufferError, match=r"rechunk\(\)"):
        bridge.from_dlpack(pl.concat([column, column], rechunk=False))
    fixed = pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2))
    assert not copied(fixed)
    assert bridge.to_torch(fixed).tolist() == [[1, 2], [3, 4]]
    frame = pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    assert copied(frame)
    assert bridge.to_numpy(frame).tolist() == [[1, 0.5], [2, 1.5]]


def test_polars_nulls_are_refused() -> None:
    pl = pytest.importorskip("polars")
    columns = [
        pl.Series([2**53 + 1, None]),
        pl.Series([True, None]),
        pl.DataFrame({"a": [1, None], "b": [1, 2]}),
        pl.Series([[1, None], [3, 4]], dtype=pl.Array(pl.Int64, 2)),
    ]
    for column in columns:
        for call in (bridge.asarray, bridge.from_dlpack, bridge.to_numpy):
            with pytest.raises(BufferError, match=r"1 null\b.*fill_null"):
                call(column)


def test_awkward_arrays_are_shared_if_they_are_regular() -> None:
    ak = pytest.importorskip("awkward")
    x = ak.Array([[1.0, 2.0], [3.0, 4.0]])
    assert bridge.from_dlpack(x).readonly
    assert bridge.to_torch(x).tolist() == [[1, 2], [3, 4]]
    assert not copied(ak.from_numpy(np.arange(3.0)))
    for x in (ak.Array([1, None]), ak.Array([[1, 2], None]), ak.Array([[1, None], [2, 3]])):
        with pytest.raises(BufferError, match=r"1 null\b.*fill_none"):
            bridge.from_dlpack(x)
    with pytest.raises(BufferError, match="not one block"):
        bridge.from_dlpack(ak.Array([[1], [2, 3]]))


def test_xarray_variables_are_shared() -> None:
    xr = pytest.importorskip("xarray")
    held = np.arange(3.0)
    for x in (xr.DataArray(held), xr.Variable("x", held)):
        assert not copied(x)
        assert bridge.shares_memory(x, held)


def test_pandas_strings_are_copied() -> None:
    pd = pytest.importorskip("pandas")
    for x in (pd.Series(["a", "b"]), pd.Index(["a", "b"]), pd.Series(["a", "b"], dtype=object)):
        assert bridge.asarray(x).tolist() == [b"a", b"b"]
        workspace.FeedBlob("strings", x)
        assert workspace.FetchBlob("strings").tolist() == [b"a", b"b"]
        with pytest.raises(BufferError):
            bridge.from_dlpack(x)
    with pytest.raises(BufferError, match="1 null"):
        bridge.asarray(pd.Series(["a", None]))


def test_polars_and_arrow_strings_are_copied() -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for x in (pl.Series(["a", "b"]), pa.array(["a", "b"]), pa.chunked_array([["a"], ["b"]])):
        assert bridge.asarray(x).tolist() == [b"a", b"b"]
        workspace.FeedBlob("strings", x)
        assert workspace.FetchBlob("strings").tolist() == [b"a", b"b"]
    for x in (pl.Series(["a", None]), pa.array(["a", None])):
        with pytest.raises(BufferError, match="1 null"):
            bridge.asarray(x)


def test_columns_of_datasets_are_read() -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"text": ["x", "y"], "number": [1, 2]})
    assert bridge.asarray(data["text"]).tolist() == [b"x", b"y"]
    assert bridge.asarray(data["number"]).tolist() == [1, 2]
