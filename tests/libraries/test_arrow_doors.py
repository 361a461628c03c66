# SPDX-License-Identifier: Apache-2.0
"""Arrow's data of other libraries: what is made anew at each call, chunks, readers, bits."""

from __future__ import annotations

from typing import Any

import pytest

import bridge

pa = pytest.importorskip("pyarrow")


def copied_bytes(x: Any) -> int:
    with bridge.audit() as log:
        bridge.from_dlpack(x)
    return log.copied_bytes


def test_a_query_is_run_at_each_call() -> None:
    duckdb = pytest.importorskip("duckdb")
    query = duckdb.sql("select 7::bigint as a")
    assert copied_bytes(query) == 8
    assert bridge.from_dlpack(query).tolist() == [[7]]
    with pytest.raises(BufferError, match="new memory"):
        bridge.from_dlpack(query, copy=False)
    with bridge.no_copy(), pytest.raises(BufferError):
        bridge.to_numpy(query)
    assert not bridge.shares_memory(query, query)
    assert bridge.from_dlpack(query, copy=True).tolist() == [[7]]


@pytest.mark.parametrize("kind", ["pyarrow", "nanoarrow"])
def test_a_reader_that_is_read_once_is_not_read_by_questions(kind: str) -> None:
    def make() -> Any:
        if kind == "pyarrow":
            return pa.table({"a": [1, 2]}).to_reader()
        na = pytest.importorskip("nanoarrow")
        return na.c_array_stream(na.Array([1, 2], na.int64()))

    values = [[1], [2]] if kind == "pyarrow" else [1, 2]
    reader = make()
    # looking at it does not read it
    assert bridge.explain(reader).address is None
    with pytest.raises(BufferError, match="read once"):
        bridge.shares_memory(reader, pa.array([1]))
    assert bridge.from_dlpack(reader).tolist() == values
    assert copied_bytes(make()) == 0
    assert bridge.from_dlpack(make(), copy=False).tolist() == values


def test_an_error_about_chunks_names_the_call_that_joins_them() -> None:
    chunks = pa.chunked_array([[1], [2]])
    with pytest.raises(BufferError, match=r"combine_chunks\(\)"):
        bridge.from_dlpack(chunks)
    assert bridge.from_dlpack(chunks.combine_chunks()).tolist() == [1, 2]
    pd = pytest.importorskip("pandas")
    column = pd.Series(pd.arrays.ArrowExtensionArray(chunks))
    with pytest.raises(BufferError, match=r"2 chunks.*combine_chunks\(\)"):
        bridge.to_torch(column)
    assert bridge.to_torch(pa.chunked_array(column).combine_chunks()).tolist() == [1, 2]
    duckdb = pytest.importorskip("duckdb")
    query = duckdb.sql("select 1 as a union all select 2")
    with pytest.raises(BufferError, match=r"pyarrow.table\(x\).combine_chunks\(\)"):
        bridge.from_dlpack(query)
    assert sorted(bridge.from_dlpack(pa.table(query).combine_chunks()).tolist()) == [[1], [2]]


def test_bits_and_columns_are_places_in_memory() -> None:
    bits = pa.array([True, False] * 8)
    y = bridge.from_dlpack(bits)
    assert not bridge.shares_memory(bits, y)
    assert bridge.shares_memory(bits, bits)
    assert bridge.shares_memory(bits, bits[8:])
    assert not bridge.shares_memory(bits[:8], bits[8:])
    a, b = pa.array([1, 2]), pa.array([0.5, 1.5])
    table = pa.table({"a": a, "b": b, "bits": bits[:2]})
    assert bridge.shares_memory(table, a)
    assert bridge.shares_memory(b, table)
    assert bridge.shares_memory(table, bits)
    assert not bridge.shares_memory(table, bridge.from_dlpack(table))
    assert not bridge.shares_memory(table, bits[8:])


def test_nothing_is_copied_where_there_are_no_elements() -> None:
    table = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.float64())})
    for x, sizes in ((table, (0, 2)), (pa.array([], pa.bool_()), (0,))):
        assert bridge.from_dlpack(x, copy=False).sizes() == sizes
        with bridge.no_copy():
            bridge.to_numpy(x)


def test_pandas_lists_of_one_size_are_shared_and_others_refused() -> None:
    pd = pytest.importorskip("pandas")
    rows = pa.array([[1, 2], [3, 4]], pa.list_(pa.int16(), 2))
    column = pd.Series(pd.arrays.ArrowExtensionArray(rows))
    assert bridge.from_dlpack(column, copy=False).tolist() == [[1, 2], [3, 4]]
    for other, match in (
        (pa.array([1], pa.timestamp("ns")), "to int32 or int64"),
        (pa.array([[1], [2, 3]]), "lists of any length"),
        (pa.array([1], pa.decimal128(5)), "decimals"),
    ):
        with pytest.raises(BufferError, match=match):
            bridge.from_dlpack(pd.Series(pd.arrays.ArrowExtensionArray(other)))
