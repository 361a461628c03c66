# SPDX-License-Identifier: Apache-2.0
"""Records: names, types and values of fields as Caffe2's, and what it refuses."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bridge.caffe2 import core, schema, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def nested() -> schema.Struct:
    return schema.Struct(
        ("a", schema.Scalar(np.int32, metadata=schema.Metadata(categorical_limit=5))),
        ("b", schema.Map(np.int64, (schema.Scalar((np.float32, (2, 3)))))),
        ("c:d", schema.ListWithEvicted(schema.Struct(("e", str)))),
        ("c:f", schema.Struct()),
    )


NAMES = [
    "a",
    "b:lengths",
    "b:values:keys",
    "b:values:values",
    "c:d:lengths",
    "c:d:values:e",
    "c:d:_evicted_values",
]


def test_leaves_have_names_types_and_places() -> None:
    record = nested()
    assert record.field_names() == NAMES
    assert [dtype.base.name for dtype in record.field_types()] == [
        "int32",
        "int32",
        "int64",
        "float32",
        "int32",
        "str",
        "int64",
    ]
    assert record.b["values"].slice() == slice(2, 4)
    assert record.c.d.e.id() == 5 and record.c.slice() == slice(4, 7)
    assert record["c:d:_evicted_values"] is record.c.d._evicted_values
    assert "c:f" in record and "c:g" not in record and "a:x" not in record
    assert record[0] is record.a and list(record) == [record.a, record.b, record.c]
    assert record["c:d:values", 0].field_names() == ["c:d:values:e", "a"]
    assert record.get("zzz", 3) == 3 and record.get("a", None) is record.a


def test_copies_are_equal_and_without_values_if_asked() -> None:
    record = schema.Struct(("a", np.array([1.5])), ("b", schema.List(np.array([1, 2]), [2])))
    for copy in (record.clone(), pickle.loads(pickle.dumps(record))):
        assert copy == record and copy is not record and copy.a is not record.a
        assert copy.b.items().tolist() == [1, 2] and copy.b.lengths().tolist() == [2]
    bare = record.clone_schema()
    assert record.has_blobs() and not bare.has_blobs() and bare == record
    with pytest.raises(AssertionError, match="not set"):
        bare.field_blobs()
    assert nested() != record and nested().clone().a.metadata.categorical_limit == 5


def test_structs_are_joined_and_subtracted() -> None:
    a = schema.Struct(("x", np.int32), ("in", schema.Struct(("p", str), ("q", str))))
    b = schema.Struct(("in", schema.Struct(("r", str))), ("y", str))
    assert (a + b).field_names() == ["x", "in:p", "in:q", "in:r", "y"]
    assert (a + b - a).field_names() == ["in:r", "y"]
    assert (a - schema.Struct(("in:q", str), ("none", str))).field_names() == ["x", "in:p"]
    for refused in (lambda: a + a, lambda: a - schema.Struct(("x", schema.Struct()))):
        with pytest.raises(TypeError, match="field"):
            refused()
    with pytest.raises(TypeError):
        a + schema.Scalar()  # type: ignore[operator]
    with pytest.raises(TypeError, match="disabled"):
        a.x = schema.Scalar()
    with pytest.raises(ValueError, match="Duplicate field name: a"):
        schema.Struct(("a", str), ("a", str))
    for name in ("", "lengths"):
        with pytest.raises(AssertionError, match=r"Field names|lengths"):
            schema.Struct((name, str))


def test_scalars_convert_values_to_their_type() -> None:
    assert schema.Scalar(np.float32, [1, 2])().dtype == np.float32
    assert schema.Scalar(np.int64, 3)().tolist() == [3]
    assert schema.Scalar((np.int32, 1)).field_type().shape == (1,)
    assert schema.Scalar((np.int32, (2, 3)), [])().shape == (0, 2, 3)
    assert schema.Scalar(np.int32, np.ones((4, 2))).field_type().shape == (2,)
    assert schema.Scalar(None) == schema.Scalar(np.void)
    assert schema.Scalar(blob=np.array(3.0)).field_type() == np.void
    with pytest.raises(ValueError, match="ambiguous"):
        schema.Scalar(blob="name")
    with pytest.raises(AssertionError, match="Invalid blob type"):
        schema.Scalar(blob=[1])
    with pytest.raises(AssertionError, match="structured"):
        schema.Scalar(np.dtype([("a", np.int32)]))
    with pytest.raises(AssertionError, match="integral"):
        schema.Scalar(np.float32, metadata=schema.Metadata(categorical_limit=2))
    with pytest.raises(TypeError, match="unknown type"):
        schema.Scalar((np.void, (2,)))
    column = schema.Scalar(np.float32, [1.0])
    with pytest.raises(AssertionError, match="Expected float32"):
        column.set_value(np.array([1]), throw_on_type_mismatch=True, unsafe=True)
    assert column().tolist() == [1.0]


def test_records_come_back_from_columns_in_any_order() -> None:
    record = schema.Struct(
        ("a", np.int32), ("b", schema.List(np.int64)), ("c", schema.Map(np.int64, np.float32))
    )
    order = [3, 0, 5, 2, 4, 1]
    names, types = record.field_names(), record.field_types()
    found = schema.from_column_list(
        [names[i] for i in order], [types[i] for i in order], [np.array([i]) for i in order]
    )
    assert isinstance(found.c, schema.List) and sorted(found.field_names()) == sorted(names)
    assert found.c["values:keys"]().tolist() == [4] and found["b:values"].dtype == np.int64
    assert schema.from_column_list([]) == schema.Struct()
    with pytest.raises(ValueError, match="Duplicate field name"):
        schema.from_column_list(["a", "a:b"])
    with pytest.raises(AssertionError, match="col_types must have the same length"):
        schema.from_column_list(["a"], [])


def test_records_of_blobs_are_fed_and_fetched() -> None:
    net = core.Net("of_records")
    record = schema.NewRecord(net, schema.Struct(("a", np.float32), ("b", schema.List(str))))
    assert [str(one) for one in record.field_blobs()] == record.field_names()
    values = [np.ones(2, np.float32), np.array([1, 1], np.int32), np.array(["x", "y"])]
    schema.FeedRecord(record, schema.from_blob_list(record, values))
    fetched = schema.FetchRecord(record)
    assert fetched.a().tolist() == [1, 1] and fetched.b.items().tolist() == ["x", "y"]
    child = workspace.C.Workspace()
    schema.FeedRecord(record, values, child)
    assert schema.FetchRecord(record, child).a().tolist() == [1, 1]
    with pytest.raises(AssertionError, match="exactly 3"):
        schema.FeedRecord(record, values[:2])
    with pytest.raises(AssertionError, match="values are blobs"):
        schema.FetchRecord(fetched)


def test_nets_make_empty_and_constant_records() -> None:
    net = core.Net("constants")
    empty = schema.InitEmptyRecord(net, schema.Struct(("a", (np.int64)), ("b", np.void)))
    constant = schema.ConstRecord(net, schema.Struct(("a", np.array([3], np.int64))))
    with pytest.raises(TypeError, match="Unknown dtype"):
        schema.InitEmptyRecord(net, schema.Scalar(np.void), enforce_types=True)
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob(empty.a()).dtype == np.int64
    assert workspace.FetchBlob(empty.b()).shape == (0,)
    assert schema.FetchRecord(constant).a().tolist() == [3]


def test_types_have_the_numbers_of_caffe2() -> None:
    for number, dtype in ((1, np.float32), (4, str), (5, np.bool_), (12, np.float16)):
        assert schema.data_type_for_dtype(np.dtype(dtype)) == number
        assert schema.dtype_for_core_type(number) is dtype
    with pytest.raises(TypeError, match="Unknown core type: 100"):
        schema.dtype_for_core_type(100)


def test_dictionaries_lists_and_types_become_records() -> None:
    assert schema.as_record({"a": np.int32, "b": {"c": str}}).field_names() == ["a", "b:c"]
    assert schema.as_record([np.int32, str]) == schema.Tuple(np.int32, str)
    record = schema.as_record(np.int32)
    assert schema.schema_check(record) is record
    with pytest.raises(AssertionError, match="before"):
        schema.schema_check(record, schema.RawTuple(2))
    assert schema.is_schema_subset(schema.Tuple(str), schema.RawTuple(2))
    schema.attach_metadata_to_scalars(record, schema.Metadata(expected_value=2))
    assert record.field_metadata() == [(None, 2, None)]


def test_fields_are_shown_as_caffe2_shows_them() -> None:
    shown = repr(schema.Struct(("a", schema.List(np.int32))))
    assert shown.splitlines() == [
        "Struct( ",
        "  a=",
        "    List(",
        "      lengths=",
        "        Scalar(dtype('int32'), None, None)",
        "      _items=",
        "        Scalar(dtype('int32'), None, None)",
        "    )",
        ") ",
    ]
