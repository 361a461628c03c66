# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Segment: memory that several processes map, in a file that has no name (memfd).

Note: The kernel's part
---------------------------
A segment is sealed: no process can change its size (F_SEAL_SHRINK, F_SEAL_GROW), or the seals
(F_SEAL_SEAL). One that is not shared as writable has F_SEAL_FUTURE_WRITE, too: the mapping that its
maker has by then stays writable, and no other one can be made so. The memory is freed with the last
mapping and the last descriptor of it, in whatever process, however that process ends.

Note: One mapping in a process
------------------------------
A Mapping has one range of addresses and one descriptor. It is found by the number of its file, so a
segment that comes in twice, by whichever way, is mapped once. Each Segment is one use of a Mapping;
the last one unmaps it. A forked child has all Mappings of its parent, at the same addresses.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport (
    EFBIG,
    EINVAL,
    ENOENT,
    ENOMEM,
    ENOSPC,
    ENOSYS,
    ENOTDIR,
    ENXIO,
    EOVERFLOW,
    ESRCH,
    errno,
)
from libc.stdint cimport INT64_MAX, int64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from bridge.c10.python_api cimport FREE_THREADED, RELEASE_GIL_NBYTES
from bridge.shared.mapping cimport Mapping
from bridge.shared.mappings cimport (
    F_ADD_SEALS,
    F_GET_SEALS,
    MAP_FAILED,
    MAP_SHARED,
    O_CLOEXEC,
    O_NOCTTY,
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    PROT_READ,
    PROT_WRITE,
    S_ISREG,
    SEAL_FUTURE_WRITE,
    SEAL_GROW,
    SEAL_SEAL,
    SEAL_SHRINK,
    SEAL_WRITE,
    c_close,
    c_mmap,
    c_open,
    c_pread,
    c_stat,
    enter,
    fcntl,
    find_address,
    find_file,
    fstat,
    ftruncate,
    geteuid,
    leave,
    lock_mappings,
    memfd,
    reserve_room,
    stat_t,
    unlock_mappings,
    unmap,
    write_all,
)

import os


def _lock_mappings():
    lock_mappings()


def _unlock_mappings():
    unlock_mappings()


# Without the GIL another thread may hold the lock when this one forks. With it, none may, and this
# one must not: it could lose the GIL to a thread that waits for the lock.
if FREE_THREADED and hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock_mappings, after_in_parent=_unlock_mappings,
        after_in_child=_unlock_mappings)


cdef object _os_error(int code, object path=None):
    """Return the error of a system call: MemoryError where there is no room."""
    if code in (ENOSPC, ENOMEM, EFBIG, EOVERFLOW):
        return MemoryError(f"There is no room for the segment: {os.strerror(code)}.")
    if code in (ENOTDIR, ENXIO, ESRCH):
        code = ENOENT
    if code == ENOSYS:
        return OSError(code, "This system has no memfd_create, which sharing needs: Linux has it")
    return OSError(code, os.strerror(code)) if path is None else \
        OSError(code, os.strerror(code), path)


@cython.final
cdef class Segment:
    """One use of a segment that this process has mapped; the owner of the memory of its tensors."""

    def __init__(self):
        raise TypeError("A Segment is made by create(), open_segment() or tensors.segment_of().")

    def __dealloc__(self):
        if self.mapping != NULL:
            leave(self.mapping)

    @property
    def address(self) -> int:
        """The address of the first byte."""
        return <uintptr_t>self.mapping.data

    @property
    def size(self) -> int:
        """The number of bytes of the file."""
        return self.mapping.nbytes

    @property
    def fd(self) -> int:
        """The descriptor, which belongs to the segment."""
        return self.mapping.fd

    @property
    def file(self) -> tuple[int, int]:
        """The numbers (device, inode) that the kernel knows the file by."""
        return self.mapping.device, self.mapping.inode

    @property
    def writable(self) -> bool:
        """Whether this process may write."""
        return bool(self.mapping.writable)

    @property
    def open_to_all(self) -> bool:
        """Whether every process may write."""
        return bool(self.mapping.open_to_all)

    def read(self, int64_t begin, int64_t nbytes) -> bytes:
        """Return a copy of bytes. Raises BufferError: they are not all in the segment."""
        if begin < 0 or nbytes < 0 or begin > self.mapping.nbytes - nbytes:
            raise BufferError(
                f"The segment has {self.mapping.nbytes} bytes, and {nbytes} from {begin} on were "
                "looked for: it is damaged.")
        # (to touch a large mapping makes page tables, which takes longer than to read the file)
        data = PyBytes_FromStringAndSize(NULL, nbytes)
        if c_pread(self.mapping.fd, PyBytes_AS_STRING(data), nbytes, begin) != nbytes:
            memcpy(PyBytes_AS_STRING(data), self.mapping.data + begin, nbytes)
        return data

    def write(self, int64_t begin, bytes data) -> None:
        """Copy bytes into a segment that is not sealed yet. Raises MemoryError."""
        self.put(PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), begin)

    cdef int put(self, const char* data, int64_t nbytes, int64_t begin) except -1:
        """Copy bytes into a segment that is not sealed yet. Raises MemoryError."""
        cdef int failed
        _require_inside(self.mapping, begin, nbytes)
        if nbytes < RELEASE_GIL_NBYTES:
            failed = write_all(self.mapping.fd, data, nbytes, begin)
        else:
            with nogil:
                failed = write_all(self.mapping.fd, data, nbytes, begin)
        if failed:
            raise _os_error(errno)
        return 0

    cdef int make_room(self, int64_t nbytes, int64_t begin) except -1:
        """Reserve room, so that writing to the mapping cannot fail. Raises MemoryError."""
        _require_inside(self.mapping, begin, nbytes)
        if reserve_room(self.mapping.fd, nbytes, begin) != 0:
            raise _os_error(errno)
        return 0

    def seal(self, bint open_to_all) -> None:
        """Seal the file: from now on its size stays, and only this mapping may be written.

        open_to_all: every process may write.
        """
        cdef int seals = SEAL_SEAL | SEAL_SHRINK | SEAL_GROW
        if not open_to_all:
            seals |= SEAL_FUTURE_WRITE
        if fcntl(self.mapping.fd, F_ADD_SEALS, seals) != 0:
            if errno == EINVAL:
                raise OSError(
                    EINVAL, "This kernel cannot seal memory against writing, which sharing needs: "
                    "Linux can from 5.1 on")
            raise _os_error(errno)
        self.mapping.open_to_all = open_to_all

cdef int _require_inside(Mapping* mapping, int64_t begin, int64_t nbytes) except -1:
    if begin < 0 or nbytes < 0 or begin > mapping.nbytes - nbytes:
        raise BufferError(f"{nbytes} bytes at {begin} are not in the segment.")
    return 0


cdef Segment _use(Mapping* mapping):
    """Return the Segment for a use that was counted."""
    cdef Segment segment
    try:
        segment = Segment.__new__(Segment)
    except MemoryError:
        leave(mapping)
        raise
    segment.mapping = mapping
    return segment


def create(int64_t nbytes, name: str = "bridge") -> Segment:
    """Return a new Segment of zeros, which is not sealed yet.

    Raises MemoryError: no room. OSError: no descriptor is left, or the system has no memfd.
    """
    cdef stat_t status
    cdef void* data
    cdef int code
    cdef Mapping* mapping
    cdef bytes label = name.encode()
    if nbytes > _all_memory():
        raise MemoryError(
            f"There is no room for the segment: {nbytes} bytes are more than this machine has.")
    mapping = <Mapping*>calloc(1, sizeof(Mapping))
    if mapping == NULL:
        raise MemoryError
    mapping.fd = memfd(PyBytes_AS_STRING(label))
    if mapping.fd < 0:
        code = errno
        free(mapping)
        raise _os_error(code)
    if ftruncate(mapping.fd, nbytes) == 0 and fstat(mapping.fd, &status) == 0:
        mapping.device, mapping.inode = status.st_dev, status.st_ino
        data = c_mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, mapping.fd, 0)
        if data != MAP_FAILED:
            mapping.data, mapping.nbytes, mapping.writable = <char*>data, nbytes, True
            return _use(enter(mapping))
    code = errno
    c_close(mapping.fd)
    free(mapping)
    raise _os_error(code)


cdef object _memory = None


cdef object _all_memory():
    """Return the bytes of memory that this machine has, and can swap."""
    global _memory
    if _memory is None:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        try:
            with open("/proc/meminfo") as lines:
                total += sum(
                    1024 * int(line.split()[1]) for line in lines if line.startswith("SwapTotal:"))
        except OSError:
            total = INT64_MAX
        _memory = total
    return _memory


def open_segment(path: str, file: tuple[int, int] | None = None, bint of_anyone=False) -> Segment:
    """Return the Segment of the file at `path`, mapped; the one that this process has already.

    file: the numbers that it must have. of_anyone: another user may own it.

    Raises FileNotFoundError: nothing is there, or another file. PermissionError: it is another
    user's. BufferError: it is not a sealed memfd. OSError: no descriptor is left.
    """
    cdef stat_t status, again
    cdef bytes name = os.fsencode(path)
    cdef const char* c_name = PyBytes_AS_STRING(name)
    cdef Mapping* mapping
    cdef int fd, code
    if b"\0" in name:
        raise ValueError("A path has no null character.")
    if c_stat(c_name, &status) != 0:
        raise _os_error(errno, path)
    if file is not None and (status.st_dev, status.st_ino) != file:
        raise FileNotFoundError(2, "The segment is gone; another file is in its place", path)
    if status.st_uid != geteuid() and not of_anyone:
        raise PermissionError(
            13, f"It belongs to the user {status.st_uid}; only its own user attaches a segment",
            path)
    if not S_ISREG(status.st_mode):
        raise BufferError(f"{path} is not a segment of bridge: it is not a file of memory.")
    mapping = find_file(status.st_dev, status.st_ino)
    if mapping != NULL:
        return _use(mapping)
    fd = c_open(c_name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    if fd < 0:
        raise _os_error(errno, path)
    if fstat(fd, &again) != 0:
        code = errno
        c_close(fd)
        raise _os_error(code, path)
    if again.st_dev != status.st_dev or again.st_ino != status.st_ino:
        c_close(fd)
        raise FileNotFoundError(2, "The segment is gone; another file is in its place", path)
    return _map(fd, &again, path)


def find_segment(file: tuple[int, int]) -> Segment | None:
    """Return the Segment that this process has mapped already, by its file; None if it has not."""
    cdef Mapping* mapping = find_file(file[0], file[1])
    return None if mapping == NULL else _use(mapping)


def adopt(int fd, file: tuple[int, int]) -> Segment:
    """Return the Segment of a descriptor that this process was given; it belongs to the Segment.

    Raises FileNotFoundError: it is not open, or another file. BufferError: not a sealed memfd.
    """
    cdef stat_t status
    cdef Mapping* mapping
    cdef Segment segment
    if fstat(fd, &status) != 0 or (status.st_dev, status.st_ino) != file:
        raise FileNotFoundError(2, f"The descriptor {fd} is not the segment that was handed over")
    mapping = find_file(status.st_dev, status.st_ino)
    if mapping != NULL:
        segment = _use(mapping)
        if mapping.fd != fd:
            c_close(fd)
        return segment
    return _map(fd, &status, f"The descriptor {fd}")


cdef Segment _map(int fd, stat_t* status, object path):
    """Return the Segment of a new descriptor, which is closed if it fails."""
    cdef int seals = fcntl(fd, F_GET_SEALS)
    cdef int needed = SEAL_SHRINK | SEAL_GROW
    cdef bint open_to_all
    cdef Mapping* mapping
    cdef Mapping* entered
    cdef void* data
    cdef int other, code
    if seals < 0 or seals & needed != needed or status.st_size <= 0:
        c_close(fd)
        raise BufferError(
            f"{path} is not a segment of bridge: it is "
            f"{'not memory that was sealed (memfd)' if seals < 0 or status.st_size else 'empty'}"
            f"{'' if seals < 0 else ', or its size is not sealed'}.")
    open_to_all = not seals & (SEAL_FUTURE_WRITE | SEAL_WRITE)
    if open_to_all:
        other = c_open(f"/proc/self/fd/{fd}".encode(), O_RDWR | O_CLOEXEC)
        code = errno
        c_close(fd)
        if other < 0:
            raise _os_error(code, path)
        fd = other
    mapping = <Mapping*>calloc(1, sizeof(Mapping))
    if mapping == NULL:
        c_close(fd)
        raise MemoryError
    data = c_mmap(
        NULL, status.st_size, PROT_READ | PROT_WRITE if open_to_all else PROT_READ, MAP_SHARED, fd,
        0)
    if data == MAP_FAILED:
        code = errno
        c_close(fd)
        free(mapping)
        raise _os_error(code, path)
    mapping.data, mapping.nbytes, mapping.fd = <char*>data, status.st_size, fd
    mapping.device, mapping.inode = status.st_dev, status.st_ino
    mapping.writable = mapping.open_to_all = open_to_all
    entered = enter(mapping)
    if entered != mapping:
        unmap(mapping)
    return _use(entered)


cdef Segment segment_at(const char* begin, int64_t nbytes):
    """Return the Segment that has these bytes; None if no segment of this process has."""
    cdef Mapping* mapping = find_address(begin, nbytes)
    return None if mapping == NULL else _use(mapping)
