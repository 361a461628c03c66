# SPDX-License-Identifier: Apache-2.0
"""Records of a key and a value, and the interface of databases of them.

Follows caffe2/core/db.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bridge.annotation import Self


class Record:
    """A record in a database: its `key`, and `read`, which returns the value's bytes.

    view: a function that returns them without copying; both can be called while the database is
    open. where: the file and the position in it, for errors. end: the number of bytes of the file
    up to the end of the record.
    """

    __slots__ = ("end", "key", "read", "view", "where")

    def __init__(
        self,
        key: bytes,
        read: Callable[[], bytes],
        view: Callable[[], memoryview],
        where: str,
        end: int,
    ) -> None:
        self.key = key
        self.read = read
        self.view = view
        self.where = where
        self.end = end


class Reader:
    """A database open for reading; a context manager that closes it.

    `nbytes` is its size on the disk.
    """

    nbytes: int

    def records(self) -> Iterator[Record]:
        """Yield the records. Raises EnforceNotMet: the database is damaged."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the file; values of its records can no longer be read. Closing twice is allowed."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Writer:
    """A database open for writing; a context manager that finishes it, or discards it on an error.

    It replaces an existing database of that name when it is finished, not before.
    """

    def put(self, key: bytes, *value: bytes | memoryview) -> None:
        """Write a record; its value is these bytes, one after the other.

        Raises EnforceNotMet: it cannot be written.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """Close the database and move it to its final path.

        Raises EnforceNotMet: that failed; the database is discarded.
        """
        raise NotImplementedError

    def discard(self) -> None:
        """Delete the written records."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()
