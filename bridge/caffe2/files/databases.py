# SPDX-License-Identifier: Apache-2.0
"""Caffe2's databases: records of a key and a value, in files of one kind or another.

Which kinds there are, and what a reader and a writer have in common. Follows caffe2/core/db.h,
PyTorch 1.8.1.
"""

from __future__ import annotations

import os
import sys

from bridge.c10.errors import EnforceKeyError, EnforceTypeError, EnforceValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any, Self

__all__ = [
    "Reader",
    "Record",
    "Writer",
    "kinds",
    "module_of",
    "open_reader",
    "open_writer",
    "path_of",
]

# The kinds by the names that Caffe2 has for them, and the module of each.
_KINDS = {
    "minidb": "bridge.caffe2.files.minidb",
    "MiniDB": "bridge.caffe2.files.minidb",
    "lmdb": "bridge.caffe2.files.lmdb",
    "LMDB": "bridge.caffe2.files.lmdb",
}


class Record:
    """A record where it stands: `key`, and `read`, which gives the value's bytes.

    where: words that say in which file it is, and at which byte. end: bytes of the file that were
    read when the record has been.
    """

    __slots__ = ("end", "key", "read", "where")

    def __init__(self, key: bytes, read: Callable[[], bytes], where: str, end: int) -> None:
        self.key = key
        self.read = read
        self.where = where
        self.end = end


class Reader:
    """A database that is read, as a context that closes it; `nbytes` is its size on the disk."""

    nbytes: int

    def records(self) -> Iterator[Record]:
        """Return the records one by one. Raises EnforceNotMet: the database is damaged there."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the file; records that were given cannot be read any more."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Writer:
    """A database that is written, as a context that finishes it, or after an error discards it.

    Until it is finished nothing of it is there, and an old one of that name is as it was.
    """

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record. Raises EnforceNotMet: it cannot be written."""
        raise NotImplementedError

    def finish(self) -> None:
        """Put the database in its place. Raises EnforceNotMet: it cannot be; it is discarded."""
        raise NotImplementedError

    def discard(self) -> None:
        """Forget what was written."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()


def path_of(path: str | bytes | os.PathLike[Any], caller: str) -> str:
    """Return a path as `str`. Raises EnforceNotMet, also a TypeError: it is none."""
    try:
        return os.fsdecode(path)
    except TypeError as cause:
        raise EnforceTypeError(f"A database is at a path: {cause}.", caller) from cause


def kinds() -> list[str]:
    """List the kinds by the names that Caffe2 has for them."""
    return list(_KINDS)


def open_reader(db_type: str, path: str) -> Reader:
    """Open a database to read. Raises EnforceNotMet: no such file, or no such kind."""
    reader: Reader = module_of(db_type).open_reader(path)
    return reader


def open_writer(db_type: str, path: str) -> Writer:
    """Make a database to write. Raises EnforceNotMet: it cannot be made, or no such kind."""
    writer: Writer = module_of(db_type).open_writer(path)
    return writer


def module_of(db_type: str) -> Any:
    """Return the module of a database type. Raises EnforceNotMet: unknown type."""
    if not db_type:
        raise EnforceValueError("The argument db_type is missing: 'minidb' or 'lmdb'.", "db")
    name = _KINDS.get(db_type)
    if name is None:
        raise EnforceKeyError(
            f"There are no databases of the type {db_type!r}; those that there are: "
            f"{', '.join(_KINDS)}.",
            "db",
        )
    __import__(name)
    return sys.modules[name]
