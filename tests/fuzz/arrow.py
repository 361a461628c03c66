# SPDX-License-Identifier: Apache-2.0
"""A door of the exchange: Arrow's structures, of any shape, by each of the three methods.

What is taken is compared with what a reader of Arrow's layout, written here, finds in them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import bridge
from tests.fuzz.structures import COPY, content, look
from tests.fuzz.words import MEMORY, Words, refused
from tests.helpers import arrow_producer as arrow

_NUMBERS = {
    "c": "i1",
    "s": "i2",
    "i": "i4",
    "l": "i8",
    "C": "u1",
    "S": "u2",
    "I": "u4",
    "L": "u8",
    "e": "f2",
    "f": "f4",
    "g": "f8",
}
_OTHERS = ("+l", "+w:", "+w:-1", "+w:99999999999", "+s", "n", "tdD", "u", "z", "d:3,2", "+us:0")
# Elements of an array: eight bytes each are within the memory, and so are those of lists in lists.
_MOST = 1 << 9
_EMPTY = np.zeros(64, np.uint8)  # a bitmap in which all are null
_FULL = np.full(64, 255, np.uint8)

# Structures that the release of a tensor still reads, until the next are made.
_alive: list[Any] = []


class _Table(arrow.Producer):
    """A table: structures are its rows."""

    columns = ()


class _StreamTable(arrow.StreamProducer):
    columns = ()


class _Reader(arrow.StreamProducer):
    def __next__(self) -> None:
        raise StopIteration


def _format(words: Words) -> str:
    kind = words.byte()
    if kind < 120:
        return words.choice(tuple(_NUMBERS))
    if kind < 140:
        return "b"
    if kind < 200:
        return f"+w:{words.byte() % 5}"
    if kind < 225:
        return "+s"
    return words.text(_OTHERS)


def _metadata(words: Words) -> bytes | None:
    kind = words.byte()
    if kind < 150:
        return None
    if kind < 180:
        return arrow.metadata(name=b"arrow.bool8")
    if kind < 240:
        shape = [words.byte() % 4 for _ in range(words.byte() % 4)]
        found: dict[str, Any] = {"shape": shape}
        if words.byte() % 2:
            found["permutation"] = [words.byte() % 4 for _ in shape]
        text = json.dumps(found).encode()
        if words.rarely():
            text = words.choice((b"", b"{}", b"[1]", b"[" * 2000, text[:-3], b'{"shape": 1}'))
        return arrow.metadata(name=b"arrow.fixed_shape_tensor", metadata=text)
    number = words.choice((-1, -(2**31), 2**31 - 1, 1))
    length = -1 if number > 0 else 0  # a length ends what is read
    return np.int32(number).tobytes() + np.int32(length).tobytes()


def _schema(words: Words, depth: int = 0) -> arrow.Struct | None:
    if depth and words.rarely(4):
        return None
    text = _format(words)
    many = 1 if text.startswith("+w") else words.byte() % 4 if text == "+s" else 0
    if words.rarely(8):
        many = words.byte() % 3
    fields: dict[str, Any] = {"flags": words.byte(), "metadata": _metadata(words)}
    if words.rarely(6):
        fields["dictionary"] = arrow.schema(b"u")
    children = [_schema(words, depth + 1) for _ in range(many if depth < 4 else 0)]
    if words.rarely(4):
        fields["n_children"] = 0
    if words.rarely(3):
        fields["children"] = None
    if words.rarely(3):
        fields["release"] = False
    written = text.encode("utf-8", "replace").split(b"\0")[0]  # it ends there for its readers
    return arrow.schema(None if words.rarely(3) else written, *children, **fields)


def _number(words: Words, usual: int) -> int:
    return words.choice((-1, -(2**63), words.byte())) if words.rarely(6) else usual


def _array(words: Words, schema: arrow.Struct | None, rows: int, depth: int = 0) -> Any:
    """Return an array that mostly fits a schema and has at least `rows` elements."""
    if depth and words.rarely(3):
        return None
    text = ((schema and schema.value.format) or b"").decode("latin-1")
    is_list, is_struct = text.startswith("+w:") and len(text) == 4, text == "+s"
    offset = words.byte() % 5
    length = rows + (words.byte() % 3 if depth else 0)
    bitmap = words.choice((None, None, None, _FULL, _FULL, _EMPTY))
    buffers = [bitmap] if is_list or is_struct else [bitmap, MEMORY]
    if words.rarely(6):
        buffers = words.choice(([], [None], [None, None], [None, MEMORY, MEMORY]))
    many = schema.value.n_children if schema is not None and depth < 4 else 0
    inner = (length + offset) * int(text[3:]) if is_list and text[3:].isdigit() else length + offset
    below = [None] * 3 if schema is None else [*_children(schema), None, None, None]
    children = [_array(words, below[i], min(inner, _MOST), depth + 1) for i in range(min(many, 3))]
    fields: dict[str, Any] = {
        "null_count": words.choice((0, 0, -1, words.size())),
        "offset": _number(words, offset),
        "children": tuple(children),
    }
    if words.rarely(4):
        fields["n_buffers"] = 1
    if words.rarely(4):
        fields["n_children"] = words.byte() % 2
    if words.rarely(3):
        fields["dictionary"] = arrow.array(0, None, None)
    if words.rarely(3):
        fields["release"] = False
    return arrow.array(_number(words, length), *buffers, **fields)


def _children(schema: arrow.Struct) -> list[arrow.Struct | None]:
    return list(schema.given.get("children") or ())


def arrow_structures(data: bytes) -> bool:
    """Schemas and arrays, as an array, on a device, or as chunks of a stream."""
    words = Words(data)
    schema = _schema(words)
    assert schema is not None
    way = words.byte() % 6
    copy = words.choice(COPY)
    chunks = [
        _array(words, schema, words.byte() % 20) for _ in range(words.byte() % 3 if way >= 3 else 1)
    ]
    if way == 0:
        given: Any = arrow.Producer(schema, chunks[0])
        if words.rarely(8):
            given.names = words.choice(((b"arrow_schema", b"x"), (b"x", b"arrow_array")))
    elif way == 1:
        given = _Table(schema, chunks[0])
    elif way == 2:
        device = words.choice((1, 1, 2, 0, words.byte()))
        index = words.choice((-1, 0, words.size()))
        given = arrow.DeviceProducer(schema, chunks[0], device_type=device, device_id=index)
    else:
        kind = (arrow.StreamProducer, _StreamTable, _Reader)[way - 3]
        given = kind(schema, chunks, words.choice((0, 0, 5)))
        if words.rarely(30):
            given.error = None
        if words.rarely(6):
            name = words.choice(("get_schema", "get_next", "get_last_error", "release"))
            setattr(given.stream.value, name, type(getattr(given.stream.value, name))())
    _alive[:] = [given, schema, chunks]
    whole = all(chunk.value.release for chunk in chunks)  # else a stream ends there

    def take() -> None:
        x = bridge.from_dlpack(given, copy=copy)
        look(x)
        taken = [chunk for chunk in chunks if chunk.value.length]
        if x.device().type.name == "CPU" and len(taken) == 1 and whole:
            expected = _read(
                schema, taken[0], hasattr(given, "columns") or hasattr(given, "__next__")
            )
            assert tuple(x.sizes()) == expected.shape, (tuple(x.sizes()), expected.shape)
            assert content(x) == expected.tobytes()

    return not refused(take)


def _read(schema: arrow.Struct, array: arrow.Struct, is_table: bool) -> Any:
    """Return what a structure holds as an array of NumPy."""
    if not is_table or schema.given["format"] != b"+s":
        return _column(schema, array, array.given["offset"], array.given["length"])
    columns = [
        _column(one, child, child.given["offset"] + array.given["offset"], array.given["length"])
        for one, child in zip(_children(schema), array.given["children"], strict=True)
    ]
    return np.stack([one.astype(np.result_type(*columns)) for one in columns], axis=1)


def _column(schema: arrow.Struct, array: arrow.Struct, first: int, count: int) -> Any:
    dims, order, rows = [], [0], count
    while schema.given["format"].startswith(b"+w:"):
        size = int(schema.given["format"][3:])
        shape, places = _tensor(schema) or ([size], [0])
        order += [1 + len(dims) + place for place in places]
        dims += shape
        schema, array = _children(schema)[0], array.given["children"][0]
        first, count = first * size + array.given["offset"], count * size
    text = schema.given["format"].decode()
    held = MEMORY.view(np.uint8)
    if text == "b":
        flat = np.unpackbits(held, bitorder="little")[first : first + count].astype(bool)
    else:
        flat = MEMORY.view(_NUMBERS[text])[first : first + count]
        if text == "c" and schema.given.get("metadata") == arrow.metadata(name=b"arrow.bool8"):
            flat = flat != 0
    return np.ascontiguousarray(flat.reshape(rows, *dims).transpose(order))


def _tensor(schema: arrow.Struct) -> tuple[list[int], list[int]] | None:
    """Return sizes and permutation of an ``arrow.fixed_shape_tensor``."""
    text = schema.given.get("metadata") or b""
    if b"arrow.fixed_shape_tensor" not in text:
        return None
    found = json.loads(text[text.index(b"{") :])
    return found["shape"], found.get("permutation") or list(range(len(found["shape"])))
