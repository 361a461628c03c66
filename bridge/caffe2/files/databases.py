# SPDX-License-Identifier: Apache-2.0
"""Opening Caffe2's databases by the names of their types.

Follows caffe2/core/db.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError, EnforceTypeError, EnforceValueError
from bridge.caffe2.files.database_interface import Reader, Writer
from bridge.caffe2.files.lmdb import LMDBReader, LMDBWriter
from bridge.caffe2.files.minidb import MiniDBReader, MiniDBWriter

# The classes to read and write a database, by Caffe2's name of its type.
_MINIDB = MiniDBReader, MiniDBWriter
_LMDB = LMDBReader, LMDBWriter
_CLASSES: dict[str, tuple[Callable[[str], Reader], Callable[[str], Writer]]] = {
    "minidb": _MINIDB,
    "MiniDB": _MINIDB,
    "lmdb": _LMDB,
    "LMDB": _LMDB,
}


def path_of(path: str | bytes | os.PathLike[Any], caller: str) -> str:
    """Return a path as `str`. Raises EnforceNotMet, also a TypeError: it is not a path."""
    try:
        return os.fsdecode(path)
    except TypeError as cause:
        raise EnforceTypeError(f"A database is at a path: {cause}.", caller) from cause


def registered_dbs() -> list[str]:
    """List the types of databases, by Caffe2's names for them."""
    return list(_CLASSES)


def check_type(db_type: str) -> None:
    """Raise EnforceNotMet, also a KeyError or ValueError, unless there are such databases."""
    if not db_type:
        raise EnforceValueError("The argument db_type is missing: 'minidb' or 'lmdb'.", "db")
    if db_type not in _CLASSES:
        raise EnforceKeyError(
            f"There are no databases of the type {db_type!r}, only of the types "
            f"{', '.join(_CLASSES)}.",
            "db",
        )


def open_reader(db_type: str, path: str) -> Reader:
    """Open a database for reading. Raises EnforceNotMet: it does not exist, or unknown type."""
    check_type(db_type)
    return _CLASSES[db_type][0](path)


def open_to_append(db_type: str, path: str) -> Writer:
    """Open an existing database, to write more records; a minidb is written anew, with the old.

    Raises EnforceNotMet: it cannot be read or written, or unknown type.
    """
    check_type(db_type)
    if _CLASSES[db_type] is _LMDB:
        return LMDBWriter(path, append=True)
    with open_reader(db_type, path) as old:
        writer = open_writer(db_type, path)
        try:
            for record in old.records():
                writer.put(record.key, record.read())
        except BaseException:
            writer.discard()
            raise
    return writer


def open_writer(db_type: str, path: str) -> Writer:
    """Create a database. Raises EnforceNotMet: it cannot be created, or unknown type."""
    check_type(db_type)
    return _CLASSES[db_type][1](path)
