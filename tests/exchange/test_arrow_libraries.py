# SPDX-License-Identifier: Apache-2.0
"""Libraries with Arrow's C interface, in by every function that takes tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridge


def address(x: Any) -> int:
    """Return where NumPy finds the elements of a column that it shares."""
    return int(np.asarray(x).ctypes.data)


def check_shared(x: Any, where: int, values: Any) -> None:
    tensor = bridge.from_dlpack(x, copy=False)
    assert (tensor.data_ptr(), tensor.readonly) == (where, True)
    assert tensor.tolist() == values
    assert bridge.asarray(x).data_ptr() == where
    array = bridge.to_numpy(x)
    assert (array.ctypes.data, array.flags.writeable) == (where, False)
    assert bridge.to_torch(x).tolist() == values
    with pytest.raises(BufferError, match="read-only"):
        bridge.to_torch(x, copy=False)


@pytest.mark.parametrize("name", ["Int8", "UInt16", "Int64", "Float32", "Float64"])
def test_series_of_polars_are_shared(name: str) -> None:
    pl = pytest.importorskip("polars")
    series = pl.Series([1, 2, 3, 4], dtype=getattr(pl, name))
    check_shared(series, address(series), [1, 2, 3, 4])
    check_shared(series[1:3], address(series[1:3]), [2, 3])


def test_other_types_of_polars_are_copied_or_refused_with_a_reason() -> None:
    pl = pytest.importorskip("polars")
    nested = pl.Series([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], dtype=pl.Array(pl.Int16, (2, 2)))
    assert bridge.from_dlpack(nested, copy=False).tolist() == nested.to_list()
    flags = pl.Series([True, False, True])
    assert bridge.asarray(flags).tolist() == [True, False, True]
    with pytest.raises(BufferError, match="bits"):
        bridge.from_dlpack(flags, copy=False)
    with pytest.raises(BufferError, match=r"has 2 nulls.*fill_null"):
        bridge.asarray(pl.Series([2**53 + 1, None, None]))
    with pytest.raises(BufferError, match=r"rechunk\(\)"):
        bridge.from_dlpack(pl.concat([pl.Series([1]), pl.Series([2])], rechunk=False))
    for series in (
        pl.Series([1]).cast(pl.Date),
        pl.Series(["1.5"]).cast(pl.Decimal(5, 2)),
        pl.Series([[1], [2, 3]]),
        pl.Series([{"a": 1}]),
        pl.Series(["a"], dtype=pl.Categorical),
        pl.Series([object()], dtype=pl.Object),
        pl.Series([1], dtype=pl.Int128),
    ):
        with pytest.raises(BufferError):
            bridge.from_dlpack(series)


def test_frames_of_polars_are_copied_unless_they_have_one_column() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, 2], "b": [3, 4]})
    with bridge.audit() as log:
        assert bridge.from_dlpack(frame).tolist() == [[1, 3], [2, 4]]
    assert log.copied_bytes == 32
    with bridge.no_copy(), pytest.raises(BufferError, match="separate blocks"):
        bridge.from_dlpack(frame)
    assert bridge.from_dlpack(frame.select("a"), copy=False).tolist() == [[1], [2]]


def test_arrays_of_nanoarrow_are_shared() -> None:
    na = pytest.importorskip("nanoarrow")
    array = na.c_array([1, 2, 3], na.int32())
    check_shared(array, array.buffers[1], [1, 2, 3])
    with pytest.raises(BufferError, match="1 null"):
        bridge.from_dlpack(na.Array([1, None], na.int32()))


def test_relations_of_duckdb_are_read_and_nulls_refused() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select range as a from range(5)")
    assert bridge.from_dlpack(relation).tolist() == [[0], [1], [2], [3], [4]]
    relation = duckdb.sql("select range as a, range / 2 as b from range(3)")
    assert bridge.from_dlpack(relation).tolist() == [[0, 0], [1, 0.5], [2, 1]]
    with pytest.raises(BufferError, match="1 null"):
        bridge.from_dlpack(duckdb.sql("select null::int as a"))
