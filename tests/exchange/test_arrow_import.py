# SPDX-License-Identifier: Apache-2.0
"""Arrow's C interface, of structures made by hand: what is shared, and what is refused."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bridge
from tests.helpers.arrow_producer import (
    ArrowArray,
    DeviceProducer,
    Producer,
    StreamProducer,
    Struct,
    array,
    metadata,
    schema,
)

INTS = np.arange(12, dtype=np.int32)
FORMATS = {
    "int8": b"c",
    "int16": b"s",
    "int32": b"i",
    "int64": b"l",
    "uint8": b"C",
    "uint16": b"S",
    "uint32": b"I",
    "uint64": b"L",
    "float16": b"e",
    "float32": b"f",
    "float64": b"g",
}


def ints(length: int = 12, **fields: Any) -> Producer:
    return Producer(schema(b"i"), array(length, None, INTS, **fields))


def lists(size: int, rows: int, child: Struct | None = None, **fields: Any) -> Producer:
    child = array(12, None, INTS) if child is None else child
    text = fields.pop("format", b"+w:%d" % size)
    named = fields.pop("metadata", None)
    fields = {"children": [child], **fields}
    return Producer(schema(text, schema(b"i"), metadata=named), array(rows, None, **fields))


def tensors(description: bytes, size: int = 6, rows: int = 2) -> Producer:
    named = metadata(name=b"arrow.fixed_shape_tensor", metadata=description)
    return lists(size, rows, metadata=named)


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_shared_and_read_only(name: str) -> None:
    values = np.arange(5).astype(name)
    producer = Producer(schema(FORMATS[name]), array(4, None, values, offset=1))
    x = bridge.from_dlpack(producer, copy=False)
    assert x.data_ptr() == values.ctypes.data + values.itemsize
    assert (x.dtype().name, x.shape, x.readonly) == (name, (4,), True)
    assert x.tolist() == [1, 2, 3, 4]


def test_the_array_is_released_once_when_the_last_user_is_gone() -> None:
    producer = ints()
    x = bridge.from_dlpack(producer)
    view = x[3:].numpy()
    del x
    gc.collect()
    assert producer.array.releases == 0
    assert view.tolist() == list(range(3, 12))
    del view
    gc.collect()
    assert producer.array.releases == 1
    assert producer.schema.releases == 0, "the schema is the capsule's to release"


def test_a_copy_releases_the_array_at_once() -> None:
    producer = ints()
    x = bridge.from_dlpack(producer, copy=True)
    assert producer.array.releases == 1
    assert not x.readonly
    assert x.tolist() == INTS.tolist()


def test_a_structure_is_imported_once() -> None:
    producer = ints()
    x = bridge.from_dlpack(producer)
    with pytest.raises(BufferError, match="released already"):
        bridge.from_dlpack(producer)
    assert x.tolist() == INTS.tolist()


def test_a_refused_array_is_released() -> None:
    producer = ints(n_buffers=3)
    with pytest.raises(BufferError, match="3 buffers"):
        bridge.from_dlpack(producer)
    assert producer.array.releases == 1


def test_misaligned_numbers_are_copied() -> None:
    raw = np.zeros(25, np.uint8)
    raw[1:].view("u1")[:] = np.arange(3.0).view(np.uint8)
    producer = Producer(schema(b"g"), array(3, None, raw[1:]))
    assert bridge.from_dlpack(producer).tolist() == [0, 1, 2]
    producer = Producer(schema(b"g"), array(3, None, raw[1:]))
    with pytest.raises(BufferError, match="aligned"):
        bridge.from_dlpack(producer, copy=False)


# Booleans.


@pytest.mark.parametrize("first", [0, 1, 7, 9])
def test_bits_are_copied_to_one_byte_each(first: int) -> None:
    values = np.arange(80) % 3 == 0
    bits = np.packbits(values, bitorder="little")

    def producer() -> Producer:
        return Producer(schema(b"b"), array(70, None, bits, offset=first))

    with bridge.audit() as log:
        x = bridge.from_dlpack(producer())
    assert (x.numpy() == values[first : first + 70]).all()
    assert log.copied_bytes == 70
    assert not x.readonly
    with pytest.raises(BufferError, match="bits"):
        bridge.from_dlpack(producer(), copy=False)
    with bridge.no_copy(), pytest.raises(BufferError, match="bits"):
        bridge.from_dlpack(producer())


def test_bool8_is_shared_if_its_bytes_are_zero_or_one() -> None:
    named = metadata(name=b"arrow.bool8", metadata=b"")
    values = np.int8([0, 1, 1])
    x = bridge.from_dlpack(Producer(schema(b"c", metadata=named), array(3, None, values)))
    assert (x.dtype().name, x.data_ptr()) == ("bool", values.ctypes.data)
    values = np.int8([0, -1, 7])
    x = bridge.from_dlpack(Producer(schema(b"c", metadata=named), array(3, None, values)))
    assert x.numpy().view(np.uint8).tolist() == [0, 1, 1]
    with pytest.raises(BufferError, match="0 and 1"):
        bridge.from_dlpack(
            Producer(schema(b"c", metadata=named), array(3, None, values)), copy=False
        )


# Nulls.


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(("first", "length"), [(0, 200), (3, 190), (60, 5), (129, 1)])
def test_nulls_are_refused_with_their_number(counted: bool, first: int, length: int) -> None:
    valid = np.arange(200) % 3 != 0
    bits = np.packbits(valid, bitorder="little")
    nulls = length - int(valid[first : first + length].sum())
    values = np.zeros(200, np.int32)
    producer = Producer(
        schema(b"i"),
        array(length, bits, values, offset=first, null_count=nulls if counted else -1),
    )
    with pytest.raises(BufferError, match=rf"has {nulls} nulls?\b.*fill_null\(0\)"):
        bridge.from_dlpack(producer)


def test_nulls_outside_of_the_elements_do_not_matter() -> None:
    bits = np.packbits([0, 1, 1, 1, 0, 0, 0, 0], bitorder="little")
    producer = ints(3, offset=1, null_count=-1)
    producer.array.set("buffers", [bits, INTS])
    assert bridge.from_dlpack(producer).tolist() == [1, 2, 3]


@pytest.mark.parametrize("rows", [[0, 1], [1]])
def test_nulls_in_lists_are_refused_where_they_are_read(rows: list[int]) -> None:
    bits = np.packbits([1, 0, 1, 1, 1, 1, 0, 0], bitorder="little")
    child = array(6, bits, INTS, null_count=1)
    producer = lists(3, len(rows), child, offset=rows[0])
    if rows == [1]:
        assert bridge.from_dlpack(producer).tolist() == [[3, 4, 5]]
        return
    with pytest.raises(BufferError, match="has 1 null,"):
        bridge.from_dlpack(producer)


def test_an_array_of_nulls_is_refused() -> None:
    with pytest.raises(BufferError, match="has 3 nulls"):
        bridge.from_dlpack(Producer(schema(b"n"), array(3)))
    with pytest.raises(BufferError, match="type null"):
        bridge.from_dlpack(Producer(schema(b"n"), array(0)))


# Dimensions.


def test_lists_of_one_size_are_dimensions() -> None:
    x = bridge.from_dlpack(lists(4, 2, offset=1), copy=False)
    assert x.tolist() == INTS.reshape(3, 4)[1:].tolist()
    assert x.data_ptr() == INTS[4:].ctypes.data


def test_lists_in_lists_are_read_with_all_their_offsets() -> None:
    inner = array(5, None, children=[array(12, None, INTS, offset=2)], offset=1)
    producer = Producer(
        schema(b"+w:2", schema(b"+w:2", schema(b"i"))),
        array(1, None, children=[inner], offset=1),
    )
    # row 1 of pairs that begin at pair 1 of numbers that begin at number 2
    expected = INTS[2:][2:][4:8].reshape(1, 2, 2)
    assert bridge.from_dlpack(producer).tolist() == expected.tolist()


def test_lists_of_nothing_keep_their_number_of_rows() -> None:
    producer = lists(0, 3, array(0, None, None))
    assert bridge.from_dlpack(producer).shape == (3, 0)


def test_fixed_shape_tensors_have_their_shape_and_permutation() -> None:
    x = bridge.from_dlpack(tensors(b'{"shape": [2, 3]}'), copy=False)
    assert x.tolist() == INTS.reshape(2, 2, 3).tolist()
    x = bridge.from_dlpack(tensors(b'{"shape":[2,3],"permutation":[1,0]}'), copy=False)
    assert x.tolist() == INTS.reshape(2, 2, 3).transpose(0, 2, 1).tolist()
    assert x.data_ptr() == INTS.ctypes.data
    x = bridge.from_dlpack(tensors(b'{"shape":[2,3],"permutation":null,"dim_names":["H","W"]}'))
    assert x.shape == (2, 2, 3)
    x = bridge.from_dlpack(tensors(b'{"shape":[2,3],"permutation":[1,0]}'), copy=True)
    assert x.is_contiguous()


@pytest.mark.parametrize(
    "description",
    [
        *(b"", b"[]", b"{", b"{}", b'{"shape": 6}', b'{"shape": "6"}', b'{"shape": [2, 2]}'),
        *(b'{"shape": [-2, -3]}', b'{"shape": [2.0, 3]}', b'{"shape": [true, 6]}', b"\xff"),
        *(b'{"shape": [2, 3], "permutation": [0, 0]}', b'{"shape": [6], "permutation": [false]}'),
        *(b'{"shape": [2, 3], "permutation": [0]}', b'{"shape": [6], "permutation": "0"}'),
        *(b"[" * 100_000, b'{"shape": [99999999999999999999999]}', b'{"shape": [6, null]}'),
    ],
)
def test_wrong_descriptions_of_fixed_shape_tensors_are_refused(description: bytes) -> None:
    with pytest.raises(BufferError, match="fixed_shape_tensor"):
        bridge.from_dlpack(tensors(description))


def test_other_extensions_are_taken_for_their_numbers() -> None:
    named = metadata(name=b"example.weights", metadata=b"{")
    x = bridge.from_dlpack(lists(6, 2, metadata=named))
    assert x.shape == (2, 6)


# Tables: structures, of an object with columns.


class Table(Producer):
    columns = ("a", "b")


def table(second: np.ndarray[Any, Any] = INTS, kind: bytes = b"i", **fields: Any) -> Table:
    fields = {"children": [array(12, None, INTS), array(12, None, second)], **fields}
    return Table(
        schema(b"+s", schema(b"i", name=b"a"), schema(kind, name=b"b")),
        array(fields.pop("length", 12), None, **fields),
    )


def test_columns_of_one_type_are_copied_into_rows() -> None:
    with bridge.audit() as log:
        x = bridge.from_dlpack(table(INTS[::-1].copy(), length=3, offset=2))
    assert x.tolist() == [[2, 9], [3, 8], [4, 7]]
    assert log.copied_bytes == 24
    assert x.dtype().name == "int32"
    with pytest.raises(BufferError, match="Take a column"):
        bridge.from_dlpack(table(), copy=False)


def test_columns_of_several_types_get_the_type_that_numpy_promotes_to() -> None:
    x = bridge.from_dlpack(table(np.arange(12.0) / 2, b"g"))
    assert x.dtype().name == "float64"
    assert x.tolist() == [[i, i / 2] for i in range(12)]


def test_one_column_is_shared() -> None:
    one = Table(schema(b"+s", schema(b"i")), array(12, None, children=[array(12, None, INTS)]))
    x = bridge.from_dlpack(one, copy=False)
    assert (x.shape, x.data_ptr()) == ((12, 1), INTS.ctypes.data)


def test_structures_outside_a_stream_are_refused() -> None:
    found = table()
    with pytest.raises(BufferError, match="structures"):
        bridge.from_dlpack(Producer(found.schema, found.array))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: table(kind=b"u"), "strings"),
        (lambda: table(length=13), "too few"),
        (lambda: table(offset=1), "too few"),
        (lambda: table(children=[array(12, None, INTS)]), "1 children"),
        (lambda: table(children=[array(12, None, INTS), None]), "NULL"),
        (lambda: Table(schema(b"+s"), array(0, None)), "0 columns"),
        (
            lambda: Table(
                schema(b"+s", schema(b"+w:1", schema(b"i"))),
                array(1, None, children=[array(1, None, children=[array(1, None, INTS)])]),
            ),
            "more than one number",
        ),
    ],
)
def test_tables_with_unfit_columns_are_refused_and_released(
    make: Callable[[], Table], match: str
) -> None:
    producer = make()
    with pytest.raises(BufferError, match=match):
        bridge.from_dlpack(producer)
    assert producer.array.releases == 1


# Other types.


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        *((b"u", "strings"), (b"U", "strings"), (b"vu", "strings"), (b"z", "bytes")),
        *((b"Z", "bytes"), (b"vz", "bytes"), (b"w:4", "bytes"), (b"d:19,10", "float64")),
        *((b"d:9,2,256", "decimals"), (b"tdD", "to_physical"), (b"tdm", "dates")),
        *((b"tts", "times"), (b"ttn", "times"), (b"tss:", "timestamps"), (b"tsn:UTC", "int64")),
        *((b"tDs", "durations"), (b"tiM", "intervals"), (b"tin", "intervals")),
        *((b"+l", "one size"), (b"+L", "lists"), (b"+vl", "lists"), (b"+s", "structures")),
        *((b"+m", "maps"), (b"+ud:0,1", "union"), (b"+us:0,1", "union"), (b"+r", "run_end")),
        *((b"", "''"), (b"x", "'x'"), (b"ii", "'ii'"), (b"l\xff", "format"), (b"?" * 999, "'\\?")),
        *((b"+w", "size"), (b"+w:", "size"), (b"+w:-1", "size"), (b"+w:1x", "size")),
        *((b"+w:99999999999999999999", "size"), (b"+w:2147483648", "size"), (b"+wide", "size")),
    ],
)
def test_unfit_formats_are_refused_and_released(kind: bytes, match: str) -> None:
    producer = Producer(schema(kind), array(1, None, INTS))
    with pytest.raises(BufferError, match=match):
        bridge.from_dlpack(producer)
    assert producer.array.releases == 1


def test_dictionaries_are_refused() -> None:
    producer = Producer(schema(b"i", dictionary=schema(b"u")), array(1, None, INTS))
    with pytest.raises(BufferError, match="dictionary_decode"):
        bridge.from_dlpack(producer)


# Broken structures.

HUGE = 2**62

# fmt: off
BROKEN: dict[str, tuple[Callable[[], Any], str]] = {
    "negative length": (lambda: ints(-1), "length -1"),
    "negative offset": (lambda: ints(offset=-1), "offset -1"),
    "length and offset overflow": (lambda: ints(HUGE, offset=HUGE + HUGE - 1), "offset"),
    "more bytes than addresses": (lambda: ints(HUGE), "more bytes"),
    "offset beyond addresses": (lambda: ints(1, offset=HUGE), "more bytes"),
    "more booleans than addresses": (lambda: Producer(schema(b"b"), array(HUGE, None, INTS)),
        "more bytes"),
    "nulls counted below -1": (lambda: ints(null_count=-2), "-2 nulls"),
    "more nulls than elements": (lambda: ints(null_count=13), "13 nulls"),
    "nulls and no bitmap": (lambda: ints(null_count=3), "no bitmap"),
    "no memory": (lambda: Producer(schema(b"i"), array(1, None, None)), "no memory"),
    "no memory of bits": (lambda: Producer(schema(b"b"), array(1, None, None)), "no memory"),
    "one buffer": (lambda: Producer(schema(b"i"), array(1, INTS)), "1 buffers"),
    "no buffers": (lambda: Producer(schema(b"i"), array(1)), "0 buffers"),
    "list of buffers is NULL": (
        lambda: Producer(schema(b"i"), Struct(ArrowArray, length=1, n_buffers=2)),
        "no list of buffers",
    ),
    "children of numbers": (lambda: ints(children=[array(1, None, INTS)]), "1 children"),
    "a dictionary": (lambda: ints(dictionary=array(1, None, INTS)), "dictionary"),
    "array was released": (lambda: ints(release=False), "released"),
    "schema was released": (lambda: Producer(schema(b"i", release=False), array(1, None, INTS)),
        "released"),
    "no format": (lambda: Producer(schema(None), array(1, None, INTS)), "no format"),
    "no child of the schema": (
        lambda: Producer(schema(b"+w:2"), array(1, None, children=[array(2, None, INTS)])),
        "0 children",
    ),
    "children of the schema are NULL": (
        lambda: Producer(schema(b"+w:2", n_children=1, children=None), array(1, None)),
        "NULL|children",
    ),
    "child of the schema is NULL": (lambda: Producer(schema(b"+w:2", None), array(1, None)),
        "missing"),
    "child of the schema was released": (
        lambda: Producer(schema(b"+w:2", schema(b"i", release=False)), array(1, None)),
        "released",
    ),
    "lists without child": (lambda: Producer(schema(b"+w:2", schema(b"i")), array(1, None)),
        "0 children"),
    "lists with children": (lambda: lists(2, 1, children=[array(2, None, INTS)] * 2, n_children=2),
        "2 children"),
    "child is NULL": (lambda: lists(2, 1, children=[None], n_children=1), "NULL"),
    "child was released": (lambda: lists(2, 1, array(2, None, INTS, release=False)), "released"),
    "child is too short": (lambda: lists(5, 3), "too few"),
    "child is too short behind the offset": (lambda: lists(4, 3, offset=1), "too few"),
    "child of negative length": (lambda: lists(2, 1, array(-1, None, INTS)), "length -1"),
    "lists of more than all elements": (lambda: lists(2**31 - 1, 2**55), "too few"),
    "lists beyond addresses": (lambda: lists(1, HUGE), "more bytes"),
    "a bitmap beyond addresses": (
        lambda: Producer(schema(b"c"), array(HUGE, INTS, INTS, null_count=-1)),
        "more bytes",
    ),
    "child of more bytes than addresses": (lambda: lists(4, HUGE // 8, array(HUGE, None, INTS)),
        "more bytes"),
}
# fmt: on


@pytest.mark.parametrize("name", BROKEN)
def test_broken_structures_are_refused_and_released(name: str) -> None:
    make, match = BROKEN[name]
    producer = make()
    with pytest.raises(BufferError, match=match):
        bridge.from_dlpack(producer)
    moved = name not in ("array was released", "schema was released")
    assert producer.array.releases == moved


def test_a_schema_that_is_its_own_child_is_refused() -> None:
    own = schema(b"+w:1", None)
    own.set("children", [own])
    producer = Producer(own, array(1, None))
    with pytest.raises(BufferError, match="deep"):
        bridge.from_dlpack(producer)


@pytest.mark.parametrize("text", [b"\xff\xff\xff\xff", b"\1\0\0\0\xff\xff\xff\xff"])
def test_broken_metadata_is_refused(text: bytes) -> None:
    with pytest.raises(BufferError, match="metadata"):
        bridge.from_dlpack(lists(2, 1, metadata=text + bytes(8)))


# Methods.


@pytest.mark.parametrize(
    "result", [None, (), (1, 2), (1, 2, 3), "ab", ([], []), (None, None)], ids=str
)
def test_results_that_are_not_capsules_are_refused(result: Any) -> None:
    made = type("Odd", (), {"__arrow_c_array__": lambda self: result})()
    with pytest.raises(BufferError, match="Odd"):
        bridge.from_dlpack(made)
    made = type("Odd", (), {"__arrow_c_stream__": lambda self: result})()
    with pytest.raises(BufferError, match="Odd"):
        bridge.from_dlpack(made)


def test_methods_of_the_object_alone_are_called() -> None:
    producer = ints()
    held = SimpleNamespace(__arrow_c_array__=producer.__arrow_c_array__)
    assert bridge.from_dlpack(held).tolist() == INTS.tolist()


@pytest.mark.parametrize(
    "names", [(b"arrow_array", b"arrow_schema"), (b"arrow_schema", b"dltensor")], ids=str
)
def test_capsules_of_other_names(names: tuple[bytes, bytes]) -> None:
    producer = ints()
    producer.names = names
    with pytest.raises(BufferError, match="capsule of the name"):
        bridge.from_dlpack(producer)
    assert producer.array.releases == 0


@pytest.mark.parametrize(
    "name", ["__arrow_c_array__", "__arrow_c_device_array__", "__arrow_c_stream__"]
)
def test_an_error_of_a_method_names_the_method(name: str) -> None:
    def fail(self: Any) -> None:
        raise ValueError("out of order")

    with pytest.raises(BufferError, match=rf"Odd.{name} .*out of order"):
        bridge.from_dlpack(type("Odd", (), {name: fail})())


def test_device_arrays_of_the_host_are_shared() -> None:
    for index in (-1, 0):
        producer = DeviceProducer(
            schema(b"i"), array(12, None, INTS), device_type=1, device_id=index
        )
        x = bridge.from_dlpack(producer, copy=False)
        assert (x.data_ptr(), str(x.device())) == (INTS.ctypes.data, "cpu")
        del x
        assert producer.array.releases == 1


@pytest.mark.parametrize(("kind", "index"), [(0, 0), (99, 0), (-5, 0), (1, -2), (2, 2**40)])
def test_device_arrays_of_an_unknown_device_are_refused_and_released(kind: int, index: int) -> None:
    producer = DeviceProducer(
        schema(b"i"), array(12, None, INTS), device_type=kind, device_id=index
    )
    with pytest.raises(BufferError):
        bridge.from_dlpack(producer)
    assert producer.array.releases == 1


# Streams.


def chunk(start: int, length: int) -> Struct:
    return array(length, None, INTS, offset=start)


def test_a_stream_of_one_chunk_is_shared() -> None:
    producer = StreamProducer(schema(b"i"), [chunk(0, 0), chunk(2, 3), chunk(0, 0)])
    held = producer.chunks[1]
    x = bridge.from_dlpack(producer, copy=False)
    assert (x.tolist(), x.data_ptr()) == ([2, 3, 4], INTS[2:].ctypes.data)
    assert (producer.stream.releases, producer.schema.releases, held.releases) == (1, 1, 0)
    del x
    assert held.releases == 1


@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_a_stream_without_elements_keeps_its_row_sizes(chunks: int) -> None:
    producer = StreamProducer(schema(b"+w:2", schema(b"i")), [])
    producer.chunks = [array(0, None, children=[array(0, None, None)]) for _ in range(chunks)]
    assert bridge.from_dlpack(producer).shape == (0, 2)
    assert producer.stream.releases == 1


def test_a_stream_of_two_chunks_is_refused_without_reading_further() -> None:
    chunks = [chunk(0, 1), chunk(1, 1), chunk(2, 1)]
    producer = StreamProducer(schema(b"i"), chunks)
    with pytest.raises(BufferError, match=r"combine_chunks\(\).*rechunk\(\)"):
        bridge.from_dlpack(producer)
    assert [one.releases for one in chunks] == [1, 1, 0], "the third was not asked for"
    assert producer.stream.releases == 1


def test_an_error_of_a_stream_is_passed_on() -> None:
    producer = StreamProducer(schema(b"i"), [], status=5)
    with pytest.raises(BufferError, match="no more"):
        bridge.from_dlpack(producer)
    producer = StreamProducer(schema(b"i"), [], status=5)
    producer.error = None
    with pytest.raises(BufferError, match="error 5"):
        bridge.from_dlpack(producer)
    assert producer.stream.releases == 1


@pytest.mark.parametrize("name", ["get_schema", "get_next"])
def test_a_stream_without_a_function_is_refused(name: str) -> None:
    producer = StreamProducer(schema(b"i"), [chunk(0, 1)])
    field = dict(type(producer.stream.value)._fields_)[name]
    setattr(producer.stream.value, name, field())
    with pytest.raises(BufferError, match="NULL"):
        bridge.from_dlpack(producer)
    assert producer.stream.releases == 1


def test_a_stream_without_a_schema_is_refused() -> None:
    producer = StreamProducer(schema(b"i", release=False), [chunk(0, 1)])
    with pytest.raises(BufferError, match="no schema"):
        bridge.from_dlpack(producer)


def test_a_stream_is_read_once() -> None:
    producer = StreamProducer(schema(b"i"), [chunk(0, 1)])
    bridge.from_dlpack(producer)
    with pytest.raises(BufferError, match="released already"):
        bridge.from_dlpack(producer)
