# SPDX-License-Identifier: Apache-2.0
"""LMDB databases: written by the package lmdb, and read without it.

A database is a folder, as in Caffe2. It is written in a folder with a temporary name, which is
renamed when it is complete, so it must not exist yet, as in Caffe2. Records are in the order of
their keys.

Caffe2 opens a database for reading as often as it likes, without locks. The package opens it once
in a process; so the file is read here. It is a tree of pages, mapped into memory, whose newest
root is named by one of the first two; each place in it is checked before it is read.

Follows caffe2/db/lmdb.cc, PyTorch 1.8.1, and the format of LMDB 0.9, lmdb.h and mdb.c.
"""

from __future__ import annotations

import importlib
import mmap
import os
import shutil
import stat
from collections.abc import Iterator
from struct import Struct

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrap_error, wrapping
from bridge.caffe2.files.database_interface import Reader, Record, Writer
from bridge.caffe2.files.whole_file import sync_folder, temporary_name

_CALLER = "LMDB"
_MAP_NBYTES = 2**40  # of address space, not of memory or disk, as in Caffe2

_MAGIC = 0xBEEFC0DE
_NO_PAGE = 2**64 - 1
# In the order of bytes of the machine that wrote them.
_PAGE = Struct("=QHHHH")  # number, padding, flags, end of the offsets of nodes, begin of nodes
_MARK = Struct("=IIQQ")  # magic number, version of the format, address, largest size
_TREE = Struct(
    "=IHHQQQQQ"
)  # page size, flags, depth, numbers of pages of 3 kinds, of records, root
_LAST = Struct("=QQ")  # last page, transaction
_NODE = Struct("=HHHH")  # bytes of the value, or number of a page: low, high; flags; bytes of key
_NUMBER = Struct("=Q")  # of a page
_BRANCH, _LEAF, _KINDS = 0x01, 0x02, 0x2F  # flags of pages
_ELSEWHERE = 0x01  # of a node whose value has pages of its own
_DUPLICATES = 0x04  # of a tree


def _lmdb() -> Any:
    try:
        return importlib.import_module("lmdb")
    except ImportError as cause:
        raise EnforceNotMet(
            "Databases of the type LMDB need the package lmdb: pip install lmdb.",
            _CALLER,
        ) from cause


class LMDBReader(Reader):
    """An LMDB database open for reading, as it was when it was opened.

    Any number of them may be open for one database, beside the package lmdb. Other processes do not
    know of them: two writes to the database in the meantime may change the pages that they read, as
    in Caffe2.

    Raises EnforceNotMet: it does not exist, or (also a ValueError) it is not an LMDB database.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with wrapping(
            f"Database {path!r} cannot be read", _CALLER, (OSError, ValueError, TypeError)
        ):
            file = os.path.join(path, "data.mdb") if os.path.isdir(path) else path
            # Checked before opening: opening a pipe would wait for its writer.
            if not stat.S_ISREG(os.stat(file).st_mode):
                raise EnforceTypeError("it is not a regular file")
            with open(file, "rb") as source:
                self.nbytes: int = os.fstat(source.fileno()).st_size
                if not self.nbytes:
                    raise EnforceValueError("it is empty")
                pages = mmap.mmap(source.fileno(), self.nbytes, access=mmap.ACCESS_READ)
        self._pages = memoryview(pages)
        first = self._state(0)
        self._page_nbytes = first[1]
        *_, self._depth, self._root = max(first, self._state(self._page_nbytes))

    def close(self) -> None:
        """Close the database. Closing twice is allowed."""
        self._pages = memoryview(b"")

    def records(self) -> Iterator[Record]:
        """Yield the records in the order of their keys; ``read()`` copies a record's value.

        Raises EnforceNotMet, also a ValueError: the database is damaged.
        """
        if self._root == _NO_PAGE:
            return
        done = 0
        pages = iter(range(len(self._pages) // self._page_nbytes))
        for key, value in self._walk(self._root, self._depth, pages):
            done += len(key) + len(value)
            where = f"database {self._path!r}, key {key!r}"

            def view(value: memoryview = value) -> memoryview:
                return value

            yield Record(key, value.tobytes, view, where, done)

    def _state(self, at: int) -> tuple[int, int, int, int]:
        """Return the meta page at byte `at`: a transaction, and the tree that it left.

        That is the number of bytes of a page, the number of levels, and the page of the root.
        """
        magic, version, _, _ = self._unpack(_MARK, at + _PAGE.size)
        if magic != _MAGIC:
            raise self._damaged("it does not begin as one")
        if version != 1:
            raise self._damaged(f"it has version {version} of the format, and 1 is read")
        at += _PAGE.size + _MARK.size
        page_nbytes = self._unpack(_TREE, at)[0]
        if page_nbytes & (page_nbytes - 1) or not 256 <= page_nbytes <= 65536:
            raise self._damaged(f"its pages have {page_nbytes} bytes")
        _, flags, depth, *_, root = self._unpack(_TREE, at + _TREE.size)
        if flags & _DUPLICATES:
            raise self._damaged("it has several values of one key")
        _, transaction = self._unpack(_LAST, at + 2 * _TREE.size)
        return transaction, page_nbytes, depth, root

    def _walk(
        self, number: int, depth: int, left: Iterator[int]
    ) -> Iterator[tuple[bytes, memoryview]]:
        """Yield the keys and values of a page and of those below it, `depth` levels in all.

        left: gives a number for each page that may still be read, so that no circle is endless.
        """
        at = number * self._page_nbytes
        _, _, flags, lower, upper = self._unpack(_PAGE, at)
        is_branch = flags & _KINDS == _BRANCH
        fits = _PAGE.size <= lower <= upper <= self._page_nbytes
        if not fits or depth < 1 or (not is_branch and flags & _KINDS != _LEAF):
            raise self._damaged(f"page {number} is not one of its tree")
        if next(left, None) is None:
            raise self._damaged("its pages are a circle")
        count = (lower - _PAGE.size) // 2
        for offset in self._unpack(Struct(f"={count}H"), at + _PAGE.size):
            low, high, flags, key_nbytes = self._unpack(_NODE, at + offset)
            if is_branch:
                yield from self._walk(low | high << 16 | flags << 32, depth - 1, left)
                continue
            begin = at + offset + _NODE.size + key_nbytes
            key = bytes(self._pages[begin - key_nbytes : begin])
            nbytes = low | high << 16
            if flags & _ELSEWHERE:
                begin = self._unpack(_NUMBER, begin)[0] * self._page_nbytes + _PAGE.size
            if flags & ~_ELSEWHERE or begin + nbytes > len(self._pages):
                raise self._damaged(f"key {key!r} has no value")
            yield key, self._pages[begin : begin + nbytes]

    def _unpack(self, what: Struct, at: int) -> tuple[int, ...]:
        if at + what.size > len(self._pages):
            raise self._damaged(f"it ends before byte {at + what.size}")
        return what.unpack_from(self._pages, at)

    def _damaged(self, what: str) -> EnforceValueError:
        return EnforceValueError(
            f"Database {self._path!r} cannot be read: it is not an LMDB database, or damaged: "
            f"{what}.",
            _CALLER,
        )


class LMDBWriter(Writer):
    """An LMDB database open for writing. `final`: the path that errors name, if it is another.

    append: the database may exist, and gets the records when it is finished, where it is.

    Raises EnforceNotMet: the path exists already (also a ValueError), it cannot be created, or the
    package lmdb has it open in this process, which then writes to it alone.
    """

    def __init__(self, path: str, final: str | None = None, append: bool = False) -> None:
        lmdb = _lmdb()
        self._path = final or path
        self._errors = (OSError, ValueError, lmdb.Error)
        if os.path.lexists(path) and not append:
            raise EnforceValueError(
                f"Database {path!r} exists already, and LMDB databases are not overwritten: remove "
                "it first, or choose another name.",
                _CALLER,
            )
        self._target = os.path.abspath(path)
        self._temporary = self._target if append else temporary_name(self._target)
        try:
            if not append:
                os.mkdir(self._temporary)
        except (OSError, ValueError) as cause:
            raise self._error(cause) from cause
        try:
            self._env = lmdb.open(os.fsencode(self._temporary), map_size=_MAP_NBYTES)
            self._transaction = self._env.begin(write=True)
        except BaseException as cause:
            if not append:
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
            if self._temporary != self._target:
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
        if self._temporary != self._target:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _error(self, cause: Exception) -> Exception:
        return wrap_error(f"Database {self._path!r} cannot be written", _CALLER, cause)
