# SPDX-License-Identifier: Apache-2.0
"""A door of the exchange: exporters of buffers, of any format and layout."""

from __future__ import annotations

import array
import contextlib
import ctypes
import math
import struct
from typing import Any

import numpy as np

import bridge
from tests.fuzz.memory import MOST
from tests.fuzz.structures import COPY, content, look
from tests.fuzz.words import Words, refused

with contextlib.suppress(ImportError):  # CPython's own tests, which not all bring along
    import _testbuffer

_FORMATS = (
    "f",
    "d",
    "e",
    "b",
    "B",
    "h",
    "i",
    "l",
    "q",
    "?",
    "c",
    "n",
    "N",
    "P",
    "Q",
    "if",
    "2h",
    "3s",
)
_ORDERS = ("", "@", "=", "<", ">", "!", "2", "x")
_CTYPES = (
    *(
        ctypes.c_float,
        ctypes.c_int16,
        ctypes.c_uint8,
        ctypes.c_bool,
        ctypes.c_char,
        ctypes.c_void_p,
    ),
    *(ctypes.c_int32.__ctype_be__, ctypes.c_double.__ctype_be__, ctypes.c_longdouble),
)
_NO_BUFFER = (
    *(TypeError, ValueError, OverflowError, ZeroDivisionError, NotImplementedError, struct.error),
)


def buffer(data: bytes) -> bool:
    """Views of bytes, arrays and ctypes; layouts with steps backwards, pointers and offsets."""
    words = Words(data)
    makers = [
        _memoryview,
        _array,
        _ctypes,
        *([_any_layout] * 3 if "_testbuffer" in globals() else []),
    ]
    try:
        given = words.choice(makers)(words)
    except _NO_BUFFER:
        return False
    copy = words.choice(COPY)

    def take() -> None:
        x = bridge.from_dlpack(given, copy=copy)
        look(x)
        there = memoryview(given)
        assert tuple(x.sizes()) == there.shape
        if there.format == "c" or there.format == "<c":
            assert content(x) == there.tobytes()
        else:
            values = np.asarray(there)
            assert content(x) == values.astype(values.dtype.newbyteorder("=")).tobytes()

    return not refused(take)


def _memoryview(words: Words) -> Any:
    view = memoryview(bytearray(words.rest()[words.byte() % 8 :]))
    if words.byte() % 2:
        view = view.cast(words.text(_FORMATS))
    if words.byte() % 2:
        view = view[:: words.byte() % 5 - 2 or 1]
    return view.toreadonly() if words.rarely() else view


def _array(words: Words) -> Any:
    kind = words.choice("bBuhHiIlLqQfd")
    made = array.array(kind)
    if kind == "u":
        made.fromunicode("ab"[: words.byte() % 3])
    else:
        made.frombytes(words.rest()[: words.byte() % 5 * made.itemsize])
    return made


def _ctypes(words: Words) -> Any:
    kind: Any = words.choice(_CTYPES)
    for _ in range(words.byte() % 4):
        kind = kind * (words.byte() % 4)
    memory = bytearray(4096)
    return kind.from_buffer(memory, words.byte() % 16)


def _any_layout(words: Words) -> Any:
    """Return a buffer of CPython's tests, which takes every format, stride and offset."""
    kind = words.choice(_ORDERS) + words.text(_FORMATS)
    shape = [words.byte() % 4 for _ in range(words.byte() % 5)]
    if words.rarely():
        shape = [words.byte() % 3 for _ in range(words.choice((64, 65, 6)))]
        if math.prod(shape) > MOST:  # with strides of 0 it takes no memory, but its copies do
            shape = [min(size, 1) for size in shape]
    flags = 0
    if words.byte() % 2:
        flags |= _testbuffer.ND_WRITABLE
    if words.rarely(40):
        flags |= words.choice((_testbuffer.ND_FORTRAN, _testbuffer.ND_PIL, _testbuffer.ND_SCALAR))
    items: list[Any] = list(range(64))
    if kind.endswith(("c", "?")):
        items = [bytes([item]) if kind.endswith("c") else item % 3 == 0 for item in items]
    strides = None
    if words.byte() % 2 and not flags & _testbuffer.ND_FORTRAN:
        step = words.choice((1, 2, 4, 8))
        strides = [step * (words.byte() % 9 - 2) for _ in shape]
    made = _testbuffer.ndarray(
        items,
        shape=shape,
        strides=strides,
        offset=words.byte() % 32,
        format=kind,
        flags=flags,
    )
    return made[:: words.byte() % 5 - 2 or 1] if shape and words.rarely(60) else made
