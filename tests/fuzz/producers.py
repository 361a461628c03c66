# SPDX-License-Identifier: Apache-2.0
"""A door of the exchange: objects whose attributes of the protocols are missing, wrong or raise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import bridge
from tests.fuzz.structures import COPY, content, look
from tests.fuzz.words import MEMORY, Words, refused
from tests.helpers import arrow_producer as arrow

_ARRAY = MEMORY[:6].reshape(2, 3)
_ERRORS = (
    *(RuntimeError, KeyError, AttributeError, TypeError, BufferError, OSError, ValueError),
    *(MemoryError, StopIteration, NotImplementedError, ZeroDivisionError, UnicodeError),
)
_JUNK: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: 7,
    lambda: "text",
    lambda: (),
    lambda: (1, 0),
    lambda: (1, 0, 0),
    lambda: (2**70, 0),
    dict,
    lambda: object(),
    lambda: _ARRAY,
    lambda: np.ma.masked_array(_ARRAY, _ARRAY > 0),
    lambda: np.array(["a"], object),
    lambda: _ARRAY.__dlpack__(),
    lambda: float("nan"),
    lambda: math,
)


def _arrow() -> arrow.Producer:
    return arrow.Producer(arrow.schema(b"g"), arrow.array(6, None, MEMORY))


# What an attribute is where it is sound: its value, or what its method returns.
_METHODS: dict[str, Callable[[], Any]] = {
    "__dlpack__": lambda: _ARRAY.__dlpack__(),
    "__dlpack_device__": lambda: (1, 0),
    "to_dlpack": lambda: _ARRAY.__dlpack__(),
    "__array__": lambda: _ARRAY,
    "__arrow_c_array__": lambda: _alive(_arrow()).__arrow_c_array__(),
}
_VALUES: dict[str, Callable[[], Any]] = {
    "__array_interface__": lambda: _ARRAY.__array_interface__,
    "__array_struct__": lambda: _ARRAY.__array_struct__,
}
# Those that are wrong always.
_WRONG = (
    *("__cuda_array_interface__", "__dlpack_c_exchange_api__"),
    *("__arrow_c_device_array__", "__arrow_c_stream__"),
)
_kept: list[Any] = []


def _alive(x: Any) -> Any:
    _kept[:] = [x]
    return x


def producer(data: bytes) -> bool:
    """An object of a new class with some of the attributes, on the class or its own."""
    words = Words(data)
    names = [*_METHODS, *_VALUES, *_WRONG]
    body: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for _ in range(1 + words.byte() % 4):
        name = words.choice(names)
        (own if words.rarely(40) else body)[name] = _attribute(words, name)
    given = type("Strange", (), {**body, "__init__": lambda self: self.__dict__.update(own)})()
    copy = words.choice(COPY)

    def take() -> None:
        x = bridge.from_dlpack(given, copy=copy)
        look(x)
        if x.numel() == 6:
            assert content(x) == _ARRAY.tobytes()

    return not refused(take)


def _attribute(words: Words, name: str) -> Any:
    sound = _METHODS.get(name) or _VALUES.get(name)
    kind = words.byte() % 4
    error = words.choice(_ERRORS)
    value = words.choice(_JUNK) if sound is None or kind == 1 else sound

    def method(self: Any = None, *_: Any, **given: Any) -> Any:
        if kind == 2:
            raise error("some argument")
        return value()

    def old(self: Any = None) -> Any:  # without the arguments of today
        return method()

    if name in _VALUES or (name in _WRONG and words.byte() % 2):
        return property(method)
    return old if kind == 3 else method
