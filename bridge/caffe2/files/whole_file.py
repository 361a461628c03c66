# SPDX-License-Identifier: Apache-2.0
"""Replacing files atomically.

A file is written under a temporary name in the same folder, and renamed when all of it is on the
disk. A full disk, an error or the end of the process before that leaves the existing file
unchanged; a process that is killed leaves the temporary file, whose name begins with a dot and ends
with ``.tmp``.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager

from bridge.annotation import BinaryIO
from bridge.c10.errors import EnforceValueError

# Of Linux's renameat2: relative to the working folder; exchange the two.
_HERE, _RENAME_EXCHANGE = -100, 2


class WholeFile:
    """A file that is written by `file` and gets its name, `path`, when it is finished.

    ``with WholeFile(path) as file:`` finishes it, or discards it if the block raises. Symbolic
    links are followed; the permissions of an existing file are kept. Raises OSError; or
    EnforceNotMet, also a ValueError: the existing file is not a regular one.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        mode = _mode_of_existing(self._path, path)
        self._temporary = temporary_name(self._path)
        try:
            self.file: BinaryIO = open(self._temporary, "xb")  # noqa: SIM115  closed by finish() and discard()
        except OSError as error:
            error.filename = path
            raise
        try:
            if mode is not None:
                os.chmod(self._temporary, mode)
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> BinaryIO:
        return self.file

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.finish() if kind is None else self.discard()

    def finish(self) -> None:
        """Write the file to disk and move it to its path. Raises OSError; it is then removed."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()
            os.replace(self._temporary, self._path)
        except BaseException:
            self.discard()
            raise
        sync_folder(self._path)

    def discard(self) -> None:
        """Remove the unfinished file. Raises OSError."""
        try:
            # The raw file: closing the other would write its buffer, and the disk may be full.
            self.file.raw.close()  # type: ignore[attr-defined]
        finally:
            os.unlink(self._temporary)


def encoded(text: str) -> bytes:
    """Return text as UTF-8, with the bytes of file names in it that the locale cannot decode."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()


def write_whole(path: str, data: bytes) -> None:
    """Replace a file by `data`, at once. Raises OSError; EnforceNotMet as `WholeFile`."""
    with WholeFile(path) as file:
        file.write(data)


def temporary_name(path: str) -> str:
    """Return an unused name in the folder of `path`."""
    return os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}.tmp")


def sync_folder(path: str) -> None:
    """Write the names in the folder of `path` to the disk; Windows does it. Raises OSError."""
    if sys.platform != "win32":
        descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _mode_of_existing(path: str, given: str) -> int | None:
    """Return the permissions of the file to be replaced, which errors call `given`.

    None if there is none.
    """
    try:
        existing = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(existing.st_mode):
        raise EnforceValueError(f"{given!r} exists and is not a regular file.")
    # Renaming would replace a file that may not be written; opening it raises.
    open(path, "ab").close()
    return stat.S_IMODE(existing.st_mode)


@contextmanager
def whole_folder(path: str, files: Set[str], refusal: str, caller: str) -> Iterator[str]:
    """A block that fills the folder with the name it gets, which is then renamed to `path`.

    A folder at `path` is replaced if it has no other files than `files`; if the block raises, it
    stays as it is. Raises OSError; EnforceNotMet, also a ValueError, with the text `refusal`:
    `path` is something else.
    """
    path = os.path.abspath(path)
    if os.path.lexists(path) and not (os.path.isdir(path) and files >= set(os.listdir(path))):
        raise EnforceValueError(refusal, caller)
    temporary = temporary_name(path)
    try:
        yield temporary
        _replace_folder(temporary, path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _replace_folder(temporary: str, path: str) -> None:
    """Rename a finished folder to `path`; the folder that had the name is then removed.

    Both are in one folder. They are exchanged in one step where the system can do that.
    """
    if not os.path.lexists(path):
        os.rename(temporary, path)
    elif _exchange(temporary, path):
        shutil.rmtree(temporary)
    else:
        aside = temporary_name(path)
        os.rename(path, aside)
        try:
            os.rename(temporary, path)
        except BaseException:
            os.rename(aside, path)
            raise
        shutil.rmtree(aside)
    sync_folder(path)


def _exchange(one: str, other: str) -> bool:
    """Exchange two paths in one step; return False where the system cannot do that."""
    import ctypes

    library = None if sys.platform == "win32" else ctypes.CDLL(None)
    function = getattr(library, "renameat2", None)
    if function is None:
        return False
    paths = os.fsencode(one), os.fsencode(other)
    return bool(function(_HERE, paths[0], _HERE, paths[1], _RENAME_EXCHANGE) == 0)
