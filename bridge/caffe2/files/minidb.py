# SPDX-License-Identifier: Apache-2.0
"""Caffe2's own files of records, minidb.

A record is two int32, little-endian: the bytes of the key and those of the value, neither of them
zero; then the key and the value. Records follow one another from the first byte to the last.

Reading holds one value at a time, and believes no length that the file has no bytes for. Where
Caffe2 takes a few bytes too many at the end for the end, they are refused here: they are what is
left of a record.

Follows MiniDB, caffe2/core/db.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator

from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.files.records import Reader, Record, Writer
from bridge.caffe2.files.whole_file import WholeFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["MiniDBReader", "MiniDBWriter"]

_LENGTHS = struct.Struct("<ii")
_MAX_LENGTH = 2**31 - 1  # bytes
_CALLER = "MiniDB"


class MiniDBReader(Reader):
    """A minidb file to read.

    Raises EnforceNotMet: there is no such file, or none that can be read.

    >>> import os, tempfile
    >>> from bridge.caffe2.files.minidb import MiniDBReader, MiniDBWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "some.minidb")
    ...     with MiniDBWriter(path) as db:
    ...         db.put(b"key", b"value")
    ...     with MiniDBReader(path) as db:
    ...         [(record.key, record.read()) for record in db.records()]
    [(b'key', b'value')]
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            # Before it is opened: a pipe would wait for its writer.
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise EnforceTypeError("it is no plain file")
            self._file: BinaryIO = open(path, "rb")  # noqa: SIM115  closed by close()
        except (OSError, ValueError, TypeError) as cause:
            raise wrap_error(f"File {path!r} cannot be read", _CALLER, cause) from cause
        self.nbytes: int = os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        self._file.close()

    def records(self) -> Iterator[Record]:
        """Return the records in the order of the file; a value is read only if it is asked for.

        A record's ``read()`` is for as long as the file is open. Raises EnforceNotMet, also a
        ValueError: what stands there is no record, or only a part of one; or the disk fails.
        """
        at = 0
        while at < self.nbytes:
            if self.nbytes - at < _LENGTHS.size:
                raise self._damaged(
                    at, f"there are {self.nbytes - at} bytes, too few for the lengths of a record"
                )
            key_nbytes, nbytes = _LENGTHS.unpack(self._read(at, _LENGTHS.size))
            for what, length in (("key", key_nbytes), ("value", nbytes)):
                if length <= 0:
                    raise self._damaged(at, f"the {what} of a record is of {length} bytes")
            begin = at + _LENGTHS.size + key_nbytes
            end = begin + nbytes
            if end > self.nbytes:
                raise self._damaged(
                    at,
                    f"a record has a key of {key_nbytes} bytes and a value of {nbytes}, and only "
                    f"{self.nbytes - at - _LENGTHS.size} follow",
                )
            key = self._read(at + _LENGTHS.size, key_nbytes)

            def read(begin: int = begin, nbytes: int = nbytes) -> bytes:
                return self._read(begin, nbytes)

            yield Record(key, read, f"file {self._path!r}, byte {at}", end)
            at = end

    def _read(self, at: int, nbytes: int) -> bytes:
        try:
            self._file.seek(at)
            found = self._file.read(nbytes)
        except (OSError, MemoryError) as cause:
            raise wrap_error(
                f"File {self._path!r} cannot be read at byte {at}", _CALLER, cause
            ) from cause
        if len(found) < nbytes:
            raise self._damaged(at, "it has become shorter while it was read")
        return found

    def _damaged(self, at: int, what: str) -> EnforceValueError:
        return EnforceValueError(
            f"File {self._path!r} is no minidb file, or damaged: at byte {at} {what}.", _CALLER
        )


class MiniDBWriter(Writer):
    """A minidb file to write; see `whole_file` for what becomes of an old one of that name.

    Raises EnforceNotMet: the file cannot be made or written, or the disk is full.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._whole = WholeFile(path)
        except (OSError, ValueError) as cause:
            raise self._failure(cause) from cause
        self._broken: OSError | None = None

    def put(self, key: bytes, value: bytes) -> None:
        """Write a record. Raises EnforceNotMet: neither may be empty, or reach 2 GiB."""
        for what, nbytes in (("key", len(key)), ("value", len(value))):
            if not 0 < nbytes <= _MAX_LENGTH:
                raise EnforceValueError(
                    f"A minidb file has no {what} of {nbytes} bytes, only of 1 to {_MAX_LENGTH}.",
                    _CALLER,
                )
        try:
            self._whole.file.write(_LENGTHS.pack(len(key), len(value)) + key)
            self._whole.file.write(value)
        except OSError as cause:
            self._broken = cause  # part of a record may be in the file, which is none any more
            raise self._failure(cause) from cause

    def finish(self) -> None:
        """Put the file in its place. Raises EnforceNotMet: the disk is full, or was at a `put`."""
        try:
            if self._broken is not None:
                self._whole.discard()
                raise self._broken
            self._whole.finish()
        except OSError as cause:
            raise self._failure(cause) from cause

    def discard(self) -> None:
        """Forget what was written; an old file is as it was."""
        self._whole.discard()

    def _failure(self, cause: Exception) -> Exception:
        return wrap_error(
            f"File {self._path!r} cannot be written, and is as it was", _CALLER, cause
        )
