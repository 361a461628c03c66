# SPDX-License-Identifier: Apache-2.0
"""Names of blobs and workspaces, and values as error messages show them."""

from __future__ import annotations

import itertools
from _thread import RLock
from collections.abc import Iterable, Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceTypeError
from bridge.caffe2.base.wrapped_errors import wrap_error

_NAMES = 5
_SIZES = 8
_CHARACTERS = 60


class InvalidNameError(EnforceTypeError, EnforceAssertionError):
    """Not a valid blob name: an AssertionError in some of Caffe2's functions, else a TypeError."""


def name_of(name: Any, caller: str) -> str:
    """Return a name as plain `str`; `bytes` are decoded as UTF-8, a BlobReference is its name.

    Raises EnforceNotMet: it is of another type (also a TypeError and AssertionError), or not valid
    UTF-8 (also a ValueError).
    """
    try:
        if isinstance(name, bytes):
            return name.decode()
        if isinstance(name, str) or type(name).__name__ == "BlobReference":
            text = str(name)
            text.encode()
            return text
    except UnicodeError as cause:
        raise wrap_error(f"{name!r} is not a valid name: names are UTF-8", caller, cause) from cause
    raise InvalidNameError(
        f"A name is a str, bytes or a BlobReference, not {type(name).__name__}.", caller
    )


_naming = RLock()  # held from looking a name up to adding it


def new_name(basename: str, used: set[str]) -> str:
    """Return `basename`, with a number appended if it is in `used`; the name is added to `used`."""
    name, number = basename, 1
    with _naming:
        while name in used:
            name = f"{basename}_{number}"
            number += 1
        used.add(name)
    return name


class DummyName:
    """Makes names that are not used: ``OC2_DUMMY_0`` and so on, for nets that are converted.

    >>> names = DummyName()
    >>> names.reset({"OC2_DUMMY_1"})
    >>> names.new_dummy_name(), names.new_dummy_name()
    ('OC2_DUMMY_0', 'OC2_DUMMY_2')
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self, used_names: Any = ()) -> None:
        """Begin anew, without the names in `used_names`."""
        self._used = set(used_names)
        self._next = 0

    def new_dummy_name(self) -> str:
        """Return a name that is neither used nor was returned since the last `reset`."""
        while True:
            name = f"OC2_DUMMY_{self._next}"
            self._next += 1
            if name not in self._used:
                return name


def listed(names: Iterable[str]) -> str:
    """Return the first few names, quoted, then "..." if there are more; "none" if there are none.

    >>> from bridge.caffe2.base.names import listed
    >>> listed("abc"), listed("abcdefgh"), listed("")
    ("'a', 'b', 'c'", "'a', 'b', 'c', 'd', 'e', ...", 'none')
    """
    try:
        first = list(itertools.islice(names, _NAMES + 1))
    except RuntimeError:  # a dict to which another thread is adding
        first = list(names)
    shown = ", ".join(map(repr, first[:_NAMES]))
    return f"{shown}, ..." if len(first) > _NAMES else shown or "none"


def shown_sizes(sizes: Sequence[int]) -> str:
    """Return sizes as text, the first few of many dimensions."""
    if len(sizes) <= _SIZES:
        return str(list(sizes))
    return f"[{', '.join(map(str, sizes[:_SIZES]))}, ...]"


def shortened(value: object) -> str:
    """Return the ``repr`` of a value, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."
