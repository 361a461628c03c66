# SPDX-License-Identifier: Apache-2.0
"""Names of segments: links that hold no memory.

A name is a symbolic link in a folder of its user. It says where the segment is, ``/proc/PID/fd/N``
of the process that gave the name, and how to recognize it: by the numbers of the file, and the
random token in it. So a link whose process is gone does no harm, and a PID that is used again is
not taken for it.

Each user has a folder for each PID namespace, where the same PID is the same process. Only its
owner can list or change it. Others can find out whether a name is there, so that `attach` can say
that it is another user's.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import stat
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import contextmanager, suppress
from functools import lru_cache

from bridge.shared.layout import token_of
from bridge.shared.segment import open_segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from bridge.shared.segment import Segment

_PARENT = "/tmp"  # not tempfile's, which goes by the environment
_PREFIX = "bridge-names-"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)

# The folder of this process, for (its PID, its user); and the names that it has given.
_folders: dict[tuple[int, int], str] = {}
_own_links: set[Link] = set()
_ending_in: set[int] = set()  # PIDs that release their names at exit


class Link:
    """A name that was given."""

    __slots__ = ("path", "pid", "text")

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.pid = os.getpid()  # 0: it was released

    def release(self) -> None:
        """Take the name back; a forked child leaves it to its parent."""
        pid, self.pid = self.pid, 0
        _own_links.discard(self)
        if pid == os.getpid():
            with suppress(OSError):  # removed by hand, or by whoever cleans the folder
                if os.readlink(self.path) == self.text:
                    os.unlink(self.path)


class Place:
    """The path of a segment's descriptor, and the file and the token that are expected there."""

    __slots__ = ("file", "part", "path", "token")

    def __init__(
        self, path: str, file: tuple[int, int], token: bytes, part: bytes | None = None
    ) -> None:
        self.path = path
        self.file = file
        self.token = token
        self.part = part  # the pickled Description of the value, if it is a part of the segment

    def text(self) -> str:
        """Return it as the target of a link."""
        device, inode = self.file
        part = "" if self.part is None else "." + urlsafe_b64encode(self.part).decode()
        return f"{self.path}?{device:x}.{inode:x}.{self.token.hex()}{part}"

    @staticmethod
    @lru_cache(64)
    def of(text: str) -> Place:
        """Return the Place that `text` wrote. Raises ValueError: it is not of that form."""
        path, _, rest = text.partition("?")
        device, inode, token, *part = rest.split(".")
        return Place(
            path,
            (int(device, 16), int(inode, 16)),
            bytes.fromhex(token),
            urlsafe_b64decode(part[0]) if part else None,
        )

    def open(self, of_anyone: bool = False) -> Segment:
        """Return the Segment. Raises FileNotFoundError: it is gone."""
        segment = open_segment(self.path, self.file, of_anyone)
        if token_of(segment) != self.token:
            raise FileNotFoundError(
                2, "The segment is gone; another one is in its place", self.path
            )
        return segment


def checked(name: str) -> str:
    """Return `name`. Raises TypeError: not a str. ValueError: not one that names may be."""
    if not isinstance(name, str):
        raise TypeError(f"The name of a segment is a str, not {type(name).__name__}.")
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise ValueError(
            f"{name[:120]!r} cannot name a segment: names are 1 to 100 ASCII letters, digits, "
            "'.', '_' and '-', and not '.' or '..'."
        )
    return name


def fd_path(fd: int) -> str:
    """Return the path by which other processes open a descriptor of this one."""
    return f"{_proc(os.getpid())}/fd/{fd}"


@lru_cache(1)
def _proc(pid: int) -> str:
    # (not `pid` itself: /proc may be that of another PID namespace)
    return f"/proc/{os.readlink('/proc/self')}"


def _folder() -> str:
    """Return the path of the folder of this user, which need not be there."""
    key = (os.getpid(), os.geteuid())
    found = _folders.get(key)
    if found is None:
        found = f"{_PARENT}/{_PREFIX}{key[1]}.{_namespace()}"
        _folders.clear()
        _folders[key] = found
    return found


def _namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _make_folder() -> None:
    folder = _folder()
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o711)  # (whatever the umask)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(
            1,
            "This is the folder for names of segments, and others may write it; remove it",
            folder,
        )


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other processes from removing dead links meanwhile."""
    fd = os.open(_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def claim(name: str, place: Place) -> Link:
    """Return a new Link by which `name` leads to a place of this process.

    Raises FileExistsError: the name is in use.
    """
    path, text = f"{_folder()}/{name}", place.text()
    _make_folder()
    while True:
        try:
            os.symlink(text, path)
            break
        except FileExistsError:
            _remove_dead(name, path)
        except FileNotFoundError:
            _make_folder()
    link = Link(path, text)
    _own_links.add(link)
    _release_at_exit()
    return link


def _remove_dead(name: str, path: str) -> None:
    """Remove a link whose process is gone. Raises FileExistsError: it is not."""
    try:
        text = os.readlink(path)
        if not _is_alive(text):
            with _alone():
                if os.readlink(path) == text:
                    os.unlink(path)
            return
    except FileNotFoundError:
        return  # another process was faster
    except OSError as error:
        raise FileExistsError(
            17, f"The name {name!r} is taken by a file other than a link to a segment", path
        ) from error
    raise FileExistsError(17, f"A segment has the name {name!r} already; close it first", path)


def _is_alive(text: str) -> bool:
    try:
        Place.of(text).open()
    except (ValueError, BufferError, FileNotFoundError, PermissionError):
        return False
    except (OSError, MemoryError):
        return True  # out of descriptors or memory: not known
    return True


def find(name: str) -> Place:
    """Return where the segment with this name is, or was.

    Raises FileNotFoundError: no name of this user. PermissionError: it is another user's.
    """
    try:
        return Place.of(os.readlink(f"{_folder()}/{name}"))
    except FileNotFoundError:
        other = _other_owner(name)
    except (ValueError, OSError):
        other = None
    if other is not None:
        raise PermissionError(
            13,
            f"The segment with the name {name!r} belongs to the user {other}; only its own "
            "user attaches a segment",
        )
    raise FileNotFoundError(2, f"No segment of a process that is alive has the name {name!r}")


def _other_owner(name: str) -> int | None:
    """Return a user other than this one that has the name; None if none has."""
    end = f".{_namespace()}"
    for folder in os.listdir(_PARENT):
        if folder.startswith(_PREFIX) and folder.endswith(end):
            with suppress(OSError):
                owner = os.lstat(f"{_PARENT}/{folder}/{name}").st_uid
                if owner != os.geteuid():
                    return owner
    return None


def _release_all() -> None:
    for link in list(_own_links):
        link.release()


def _release_at_exit() -> None:
    """Arrange that the names are released when this process ends, also a multiprocessing one."""
    if os.getpid() in _ending_in:
        return
    _ending_in.clear()
    _ending_in.add(os.getpid())
    atexit.register(_release_all)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        # which end without atexit's functions
        from multiprocessing.util import Finalize

        Finalize(None, _release_all, exitpriority=0)
