# SPDX-License-Identifier: Apache-2.0
"""LMDB databases, by the package lmdb.

A database is a folder, as in Caffe2. It is written in a folder with a temporary name, which is
renamed when it is complete, so it must not exist yet, as in Caffe2. Records are in the order of
their keys.

LMDB maps its file into memory and does not check it: read only files that you trust.

Follows caffe2/db/lmdb.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator

from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.files.records import Reader, Record, Writer
from bridge.caffe2.files.whole_file import sync_folder, temporary_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LMDBReader", "LMDBWriter"]

_CALLER = "LMDB"
_MAP_NBYTES = 2**40  # of address space, not of memory or disk, as in Caffe2


def _lmdb() -> Any:
    try:
        return importlib.import_module("lmdb")
    except ImportError as cause:
        raise EnforceNotMet(
            "Databases of the type LMDB need the package lmdb: pip install lmdb.",
            _CALLER,
        ) from cause


class LMDBReader(Reader):
    """An LMDB database open for reading. Raises EnforceNotMet: it does not exist."""

    def __init__(self, path: str) -> None:
        lmdb = _lmdb()
        self._path = path
        self._lmdb_error: type[Exception] = lmdb.Error
        try:
            folder = os.path.isdir(path)
            file = os.path.join(path, "data.mdb") if folder else path
            self.nbytes: int = os.stat(file).st_size
            self._env = lmdb.open(os.fsencode(path), subdir=folder, readonly=True, create=False)
            # Values can be read in place as long as it lasts.
            self._transaction = self._env.begin(buffers=True)
        except (OSError, ValueError, lmdb.Error) as cause:
            raise self._error(cause) from cause

    def close(self) -> None:
        """Close the database. Closing twice is allowed."""
        self._transaction.abort()
        self._env.close()

    def records(self) -> Iterator[Record]:
        """Yield the records in the order of their keys; ``read()`` copies a record's value.

        Raises EnforceNotMet: the database is damaged.
        """
        done = 0
        try:
            for key, value in self._transaction.cursor():
                done += len(key) + len(value)
                where = f"database {self._path!r}, key {bytes(key)!r}"

                def view(value: memoryview = value) -> memoryview:
                    return value

                yield Record(bytes(key), value.tobytes, view, where, done)
        except self._lmdb_error as cause:
            raise self._error(cause) from cause

    def _error(self, cause: Exception) -> Exception:
        return wrap_error(f"Database {self._path!r} cannot be read", _CALLER, cause)


class LMDBWriter(Writer):
    """An LMDB database open for writing. `final`: the path that errors name, if it is another.

    Raises EnforceNotMet: the path exists already (also a ValueError), or it cannot be created.
    """

    def __init__(self, path: str, final: str | None = None) -> None:
        lmdb = _lmdb()
        self._path = final or path
        self._errors = (OSError, ValueError, lmdb.Error)
        if os.path.lexists(path):
            raise EnforceValueError(
                f"Database {path!r} exists already, and LMDB databases are not overwritten: remove "
                "it first, or choose another name.",
                _CALLER,
            )
        self._target = os.path.abspath(path)
        self._temporary = temporary_name(self._target)
        try:
            os.mkdir(self._temporary)
        except (OSError, ValueError) as cause:
            raise self._error(cause) from cause
        try:
            self._env = lmdb.open(os.fsencode(self._temporary), map_size=_MAP_NBYTES)
            self._transaction = self._env.begin(write=True)
        except BaseException as cause:
            shutil.rmtree(self._temporary, ignore_errors=True)
            if isinstance(cause, self._errors):
                raise self._error(cause) from cause
            raise

    def put(self, key: bytes, *value: bytes | memoryview) -> None:
        """Write a record. Raises EnforceNotMet: the key is empty or too long, or the disk full."""
        try:
            self._transaction.put(key, value[0] if len(value) == 1 else b"".join(value))
        except self._errors as cause:
            raise self._error(cause) from cause

    def finish(self) -> None:
        """Close the database and move it to its final path.

        Raises EnforceNotMet: the disk is full, or the path exists meanwhile.
        """
        try:
            self._transaction.commit()  # writes all of it to the disk
            self._env.close()
            # Fails if another process created the path meanwhile, unless it is an empty folder.
            os.rename(self._temporary, self._target)
            sync_folder(self._target)
        except self._errors as cause:
            raise self._error(cause) from cause
        finally:
            self._remove()

    def discard(self) -> None:
        """Remove the unfinished database."""
        self._transaction.abort()
        self._remove()

    def _remove(self) -> None:
        self._env.close()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def _error(self, cause: Exception) -> Exception:
        return wrap_error(f"Database {self._path!r} cannot be written", _CALLER, cause)
