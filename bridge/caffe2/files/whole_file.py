# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all.

A file is written under another name in the same folder, and takes the place of the old one when all
of it is on the disk. Whatever happens before, a full disk, an error or the end of the process,
leaves the old file as it was; a process that is killed leaves the unfinished one behind, whose name
begins with a dot and ends with ``.tmp``.
"""

from __future__ import annotations

import os
import stat

from bridge.c10.errors import EnforceValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["WholeFile", "sync_folder", "temporary_name"]


class WholeFile:
    """A file for writing: `file`, to write to, becomes `path` when it is finished.

    A link is followed; the mode of an old file is kept. Raises OSError; EnforceNotMet, also a
    ValueError: what is there is no plain file.
    """

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        mode = _mode_of_old(self._path)
        self._temporary = temporary_name(self._path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(self._temporary, flags, 0o666)
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            self.file: BinaryIO = open(descriptor, "wb")  # noqa: SIM115  closed by finish() and discard()
        except BaseException:
            os.close(descriptor)
            os.unlink(self._temporary)
            raise

    def finish(self) -> None:
        """Have the file on the disk, and by its name. Raises OSError: it cannot be; it is gone."""
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
        """Remove the file, which did not take its name. Raises OSError."""
        try:
            os.unlink(self._temporary)
        finally:
            # The disk may be full: what is in the buffer is not to be written, and not missed.
            self.file.raw.close()  # type: ignore[attr-defined]


def temporary_name(path: str) -> str:
    """Return a name in the folder of `path` that nobody has."""
    return os.path.join(os.path.dirname(path), f".{os.urandom(8).hex()}.tmp")


def sync_folder(path: str) -> None:
    """Have the disk know the names in the folder of `path`. Raises OSError."""
    descriptor = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode_of_old(path: str) -> int | None:
    """Return the mode of the file that is to be replaced, None if there is none."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(old.st_mode):
        raise EnforceValueError("there is something that is no plain file")
    # A new name would take the place of a file that may not be written.
    os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
    return stat.S_IMODE(old.st_mode)
