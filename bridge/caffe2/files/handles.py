# SPDX-License-Identifier: Apache-2.0
"""Databases for scripts: ``C.create_db``, transactions and cursors.

A database that is written replaces an existing file of its name when it is closed. One that is not
closed is closed when its last reference goes, so it has every record that was put, with or without
``commit()``, even after an exception or at the exit of the interpreter. So does Caffe2:
the destructors of its transactions commit (``~MiniDBTransaction``, caffe2/core/db.cc, and
``~LMDBTransaction``, caffe2/db/lmdb.cc, PyTorch 1.8.1). A process that is killed, or ends by
``os._exit``, leaves the existing file as it was.

Follows caffe2/python/pybind_state.cc and caffe2/core/db.h, PyTorch 1.8.1.

>>> import os, tempfile
>>> from bridge.caffe2 import workspace
>>> C = workspace.C
>>> path = os.path.join(tempfile.mkdtemp(), "train.minidb")
>>> db = C.create_db("minidb", path, C.Mode.write)
>>> transaction = db.new_transaction()
>>> transaction.put("key", b"value")
>>> transaction.commit()
>>> db.close()
>>> cursor = C.create_db("minidb", path, C.Mode.read).new_cursor()
>>> cursor.valid(), cursor.key(), cursor.value()
(True, b'key', b'value')
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from enum import Enum
from weakref import WeakSet

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.files.database_interface import Reader, Record, Writer
from bridge.caffe2.files.databases import (
    check_type,
    open_reader,
    open_to_append,
    open_writer,
    path_of,
)


class Mode(Enum):
    """How a database is opened: for reading, for appending, or as a new one."""

    read = 0
    write = 1
    new = 2


class DB:
    """An open database, from `create_db`; its last reference closes it."""

    _reader: Reader | None = None
    _writer: Writer | None = None

    def __init__(self, db_type: str, source: str, mode: Mode) -> None:
        if mode is Mode.read:
            self._reader = open_reader(db_type, source)
        elif mode is Mode.write and os.path.exists(source):
            self._writer = open_to_append(db_type, source)
        else:
            self._writer = open_writer(db_type, source)
        if self._writer is not None:
            _written.add(self)

    def new_transaction(self) -> Transaction:
        """Return a transaction to write records. Raises EnforceNotMet: not open for writing."""
        return Transaction(self)

    def new_cursor(self) -> Cursor:
        """Return a cursor on the first record. Raises EnforceNotMet: not open for reading."""
        return Cursor(self)

    def close(self) -> None:
        """Close the database; the new records replace an existing file.

        Closing twice is allowed. Raises EnforceNotMet: the file cannot be written; an existing one
        is unchanged.
        """
        reader, writer = self._reader, self._writer
        self._reader = self._writer = None
        if reader is not None:
            reader.close()
        if writer is not None:
            writer.finish()

    def __del__(self) -> None:
        self.close()


# Closed before the interpreter takes modules apart: after that nothing can be written.
_written: WeakSet[DB] = WeakSet()


@atexit.register
def _close_all() -> None:
    for db in list(_written):
        db.close()


class Transaction:
    """Writes records to a database."""

    def __init__(self, db: DB) -> None:
        self._db = db
        self._writer("DB.new_transaction")

    def _writer(self, caller: str) -> Writer:
        if self._db._writer is None:
            raise EnforceNotMet(
                "The database is not open for writing.", caller, condition="mode in (write, new)"
            )
        return self._db._writer

    def put(self, key: str | bytes, value: str | bytes) -> None:
        """Write a record; `str` is encoded as UTF-8. Raises EnforceNotMet: it cannot be written."""
        caller = "Transaction.put"
        for one in (key, value):
            if not isinstance(one, (str, bytes)):
                raise EnforceTypeError(
                    f"Keys and values are bytes or str, not {type(one).__name__}.", caller
                )
        writer = self._writer(caller)
        writer.put(*(one.encode() if isinstance(one, str) else one for one in (key, value)))

    def commit(self) -> None:
        """Check that the database is open. Its records are in the file when it is closed."""
        self._writer("Transaction.commit")


class Cursor:
    """A position in a database: on a record, or after the last one."""

    def __init__(self, db: DB) -> None:
        self._db = db
        self.seek_to_first()

    def _open(self) -> Reader:
        if self._db._reader is None:
            raise EnforceNotMet(
                "The database is not open for reading.", "DB.new_cursor", condition="mode == read"
            )
        return self._db._reader

    def seek_to_first(self) -> None:
        """Go to the first record."""
        self._records: Iterator[Record] = iter(self._open().records())
        self._at: Record | None = next(self._records, None)

    def supports_seek(self) -> bool:
        """Return False: a cursor cannot go to a key."""
        return False

    def next(self) -> None:
        """Go to the next record. Raises EnforceNotMet: the file is damaged."""
        self._open()
        self._at = next(self._records, None)

    def valid(self) -> bool:
        """Return whether the cursor is on a record."""
        return self._at is not None

    def _record(self, caller: str) -> Record:
        self._open()
        if self._at is None:
            raise EnforceNotMet("The cursor is after the last record.", caller, condition="valid()")
        return self._at

    def key(self) -> bytes:
        """Return the key of the record. Raises EnforceNotMet: the cursor is after the last one."""
        return self._record("Cursor.key").key

    def value(self) -> bytes:
        """Return the value of the record, copied.

        Raises EnforceNotMet: the cursor is after the last record, or the file is damaged.
        """
        return self._record("Cursor.value").read()


def create_db(db_type: str, source: str | bytes | os.PathLike[Any], mode: Mode) -> DB:
    """Open the database at the path `source`, of the type ``"minidb"`` or ``"lmdb"``.

    Raises EnforceNotMet: unknown type (also a KeyError), or the database cannot be opened; an
    existing one is then unchanged.
    """
    if not isinstance(mode, Mode):
        raise EnforceTypeError("mode is one of Mode.read, Mode.write and Mode.new.", "create_db")
    check_type(db_type)
    return DB(db_type, path_of(source, "create_db"), mode)
