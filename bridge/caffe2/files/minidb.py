# SPDX-License-Identifier: Apache-2.0
"""Caffe2's own database format, minidb.

A record is two little-endian int32, the numbers of bytes of the key and the value, both positive;
then the key and the value. The file is nothing but records.

Reading holds one value in memory at a time and checks each length against the size of the file.
Caffe2 ignores a few surplus bytes at the end; here they are an error: the rest of a record.

Follows MiniDB, caffe2/core/db.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator
from functools import partial

from bridge.annotation import BinaryIO
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrap_error, wrapping
from bridge.caffe2.files.database_interface import Reader, Record, Writer
from bridge.caffe2.files.whole_file import WholeFile

_LENGTHS = struct.Struct("<ii")
_MAX_LENGTH = 2**31 - 1  # bytes
_CALLER = "MiniDB"


class MiniDBReader(Reader):
    """A minidb file open for reading.

    Raises EnforceNotMet: the file does not exist or cannot be read.

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

    _descriptor = -1

    def __init__(self, path: str) -> None:
        self._path = path
        with wrapping(f"File {path!r} cannot be read", _CALLER, (OSError, ValueError, TypeError)):
            # Checked before opening: opening a pipe would wait for its writer.
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise EnforceTypeError("it is not a regular file")
            self._descriptor = os.open(path, os.O_RDONLY)
            # Closed here and not by the file, which may be finalised first, in any order, when a
            # cycle that is not used any more has both.
            self._file: BinaryIO = open(self._descriptor, "rb", closefd=False)  # noqa: SIM115
        self.nbytes: int = os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the file. Closing twice is allowed; the last reference does it, too."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            self._file.close()
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def records(self) -> Iterator[Record]:
        """Yield the records in the order of the file; ``read()`` reads a record's value.

        Raises EnforceNotMet: the disk fails, or (also a ValueError) the file is not a minidb file
        or is truncated.
        """
        at = 0
        while at < self.nbytes:
            if self.nbytes - at < _LENGTHS.size:
                raise self._damaged(at, f"there are {self.nbytes - at} bytes, too few for a record")
            key_nbytes, nbytes = _LENGTHS.unpack(self._read(at, _LENGTHS.size))
            for what, length in (("key", key_nbytes), ("value", nbytes)):
                if length <= 0:
                    raise self._damaged(at, f"the {what} of a record has {length} bytes")
            begin = at + _LENGTHS.size + key_nbytes
            end = begin + nbytes
            if end > self.nbytes:
                raise self._damaged(
                    at,
                    f"a record has a key of {key_nbytes} bytes and a value of {nbytes}, and only "
                    f"{self.nbytes - at - _LENGTHS.size} follow",
                )
            key = self._read(at + _LENGTHS.size, key_nbytes)
            read, view = partial(self._read, begin, nbytes), partial(self._view, begin, nbytes)
            yield Record(key, read, view, f"file {self._path!r}, byte {at}", end)
            at = end

    def _view(self, at: int, nbytes: int) -> memoryview:
        """Map a part of the file into memory, no more than that: files may be larger than it."""
        first = at - at % mmap.ALLOCATIONGRANULARITY
        with wrapping(
            f"File {self._path!r} cannot be read at byte {at}", _CALLER, (OSError, ValueError)
        ):
            pages = mmap.mmap(
                self._file.fileno(), at - first + nbytes, offset=first, access=mmap.ACCESS_READ
            )
        return memoryview(pages)[at - first :]

    def _read(self, at: int, nbytes: int) -> bytes:
        with wrapping(
            f"File {self._path!r} cannot be read at byte {at}", _CALLER, (OSError, MemoryError)
        ):
            self._file.seek(at)
            found = self._file.read(nbytes)
        if len(found) < nbytes:
            raise self._damaged(at, "it was truncated while it was read")
        return found

    def _damaged(self, at: int, what: str) -> EnforceValueError:
        return EnforceValueError(
            f"File {self._path!r} is not a minidb file, or damaged: at byte {at} {what}.", _CALLER
        )


class MiniDBWriter(Writer):
    """A minidb file open for writing, which replaces an existing one when it is finished.

    Raises EnforceNotMet: the file cannot be created.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._whole = WholeFile(path)
        except (OSError, ValueError) as cause:
            raise self._error(cause) from cause
        self._broken: OSError | None = None

    def put(self, key: bytes, *value: bytes | memoryview) -> None:
        """Write a record; its value is these bytes, one after the other.

        Raises EnforceNotMet: the disk is full, or (also a ValueError) the key or value is empty or
        has 2 GiB or more.
        """
        value_nbytes = sum(len(part) for part in value)
        for what, nbytes in (("key", len(key)), ("value", value_nbytes)):
            if not 0 < nbytes <= _MAX_LENGTH:
                raise EnforceValueError(
                    f"The {what} of a record in a minidb file has 1 to {_MAX_LENGTH} bytes, not "
                    f"{nbytes}.",
                    _CALLER,
                )
        try:
            self._whole.file.write(_LENGTHS.pack(len(key), value_nbytes) + key)
            for part in value:
                self._whole.file.write(part)
        except OSError as cause:
            self._broken = cause  # the file may end in a part of a record
            raise self._error(cause) from cause

    def finish(self) -> None:
        """Close the file and move it to its final path.

        Raises EnforceNotMet: the disk is full, or a `put` failed; the file is removed.
        """
        try:
            if self._broken is not None:
                self._whole.discard()
                raise self._broken
            self._whole.finish()
        except OSError as cause:
            raise self._error(cause) from cause

    def discard(self) -> None:
        """Remove the unfinished file; an existing one is unchanged."""
        self._whole.discard()

    def _error(self, cause: Exception) -> Exception:
        return wrap_error(
            f"File {self._path!r} cannot be written, and is unchanged", _CALLER, cause
        )
