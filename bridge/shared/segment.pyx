# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, auto_pickle=False
"""Segment: memory that several processes map, in a file that has no name (memfd).

Note: What the kernel keeps
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
from libc.stdint cimport INT64_MAX, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from bridge.c10.copy cimport copy_elements
from bridge.c10.layout cimport block, checked_mul, checked_numel, extent
from bridge.c10.python_api cimport FREE_THREADED, RELEASE_GIL_NBYTES
from bridge.c10.retained cimport retained_owner
from bridge.c10.storage cimport (
    EXTERNAL,
    READONLY,
    Storage,
    begin_of,
    flags_of,
    install,
    nbytes_of,
    new_storage,
    owner_of,
)
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, new_impl, seen, storage_of
from bridge.c10.type_meta cimport TypeMeta
from bridge.dlpack.abi cimport DL_CPU

import os

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE 1
    #endif
    #include <errno.h>
    #include <fcntl.h>
    #include <sched.h>
    #include <sys/mman.h>
    #include <sys/stat.h>
    #include <sys/types.h>
    #include <unistd.h>
    #ifdef __linux__
    #include <sys/syscall.h>
    #endif

    #ifndef F_ADD_SEALS
    #define F_ADD_SEALS 1033
    #define F_GET_SEALS 1034
    #endif
    #define BRIDGE_SEAL_SEAL 1
    #define BRIDGE_SEAL_SHRINK 2
    #define BRIDGE_SEAL_GROW 4
    #define BRIDGE_SEAL_WRITE 8
    #define BRIDGE_SEAL_FUTURE_WRITE 16

    typedef struct bridge_shared_mapping {
        struct bridge_shared_mapping *next;
        char *data;
        int64_t nbytes;
        uint64_t device, inode;
        int32_t uses;
        int fd;
        char writable;      /* the mapping */
        char open_to_all;   /* every process may map it writable */
    } bridge_shared_mapping;

    #define BRIDGE_PLACES 1024
    static bridge_shared_mapping *bridge_shared_mappings[BRIDGE_PLACES];
    static char bridge_shared_lock;

    static void bridge_shared_lock_mappings(void) {
        /* Held for some instructions, and never while another thread may get the GIL. */
        while (__atomic_exchange_n(&bridge_shared_lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
    }
    static void bridge_shared_unlock_mappings(void) {
        __atomic_store_n(&bridge_shared_lock, 0, __ATOMIC_RELEASE);
    }

    /* Return one more use of the mapping of a file; NULL if there is none. */
    static bridge_shared_mapping *bridge_shared_find(uint64_t device, uint64_t inode) {
        bridge_shared_mapping *found;
        bridge_shared_lock_mappings();
        found = bridge_shared_mappings[inode % BRIDGE_PLACES];
        while (found != NULL && (found->inode != inode || found->device != device))
            found = found->next;
        if (found != NULL) found->uses++;
        bridge_shared_unlock_mappings();
        return found;
    }

    /* Return one more use of the mapping that has these bytes; NULL if there is none. */
    static bridge_shared_mapping *bridge_shared_find_address(const char *begin, int64_t nbytes) {
        bridge_shared_mapping *found = NULL;
        int i;
        bridge_shared_lock_mappings();
        for (i = 0; found == NULL && i < BRIDGE_PLACES; i++)
            for (found = bridge_shared_mappings[i]; found != NULL; found = found->next)
                if (begin >= found->data && nbytes <= found->nbytes
                        && begin - found->data <= found->nbytes - nbytes)
                    break;
        if (found != NULL) found->uses++;
        bridge_shared_unlock_mappings();
        return found;
    }

    /* Enter a mapping; where another thread was faster, return that one's, with one more use. */
    static bridge_shared_mapping *bridge_shared_enter(bridge_shared_mapping *mapping) {
        bridge_shared_mapping **place = &bridge_shared_mappings[mapping->inode % BRIDGE_PLACES];
        bridge_shared_mapping *found;
        bridge_shared_lock_mappings();
        found = *place;
        while (found != NULL
                && (found->inode != mapping->inode || found->device != mapping->device))
            found = found->next;
        if (found != NULL) {
            found->uses++;
        } else {
            mapping->uses = 1;
            mapping->next = *place;
            *place = mapping;
        }
        bridge_shared_unlock_mappings();
        return found != NULL ? found : mapping;
    }

    static void bridge_shared_unmap(bridge_shared_mapping *mapping) {
        struct stat status;
        if (mapping->data != NULL) munmap(mapping->data, (size_t)mapping->nbytes);
        /* Whoever closed all descriptors of the process may have another file there by now. */
        if (mapping->fd >= 0 && fstat(mapping->fd, &status) == 0
                && (uint64_t)status.st_ino == mapping->inode
                && (uint64_t)status.st_dev == mapping->device)
            close(mapping->fd);
        free(mapping);
    }

    /* End one use. */
    static void bridge_shared_leave(bridge_shared_mapping *mapping) {
        bridge_shared_mapping **place = &bridge_shared_mappings[mapping->inode % BRIDGE_PLACES];
        int left;
        bridge_shared_lock_mappings();
        left = --mapping->uses;
        if (left == 0) {
            while (*place != mapping) place = &(*place)->next;
            *place = mapping->next;
        }
        bridge_shared_unlock_mappings();
        if (left == 0) bridge_shared_unmap(mapping);
    }

    static int bridge_shared_memfd(const char *name) {
    #if defined(__linux__) && defined(SYS_memfd_create)
        /* close-on-exec, sealable, and not executable, which kernels before 6.3 do not know */
        int fd = (int)syscall(SYS_memfd_create, name, 1u | 2u | 8u);
        return fd < 0 && errno == EINVAL ? (int)syscall(SYS_memfd_create, name, 1u | 2u) : fd;
    #else
        (void)name;
        errno = ENOSYS;
        return -1;
    #endif
    }

    /* Reserve bytes of the file, so that writing them to the mapping cannot fail. */
    static int bridge_shared_reserve(int fd, int64_t nbytes, int64_t offset) {
    #ifdef __linux__
        int failed;
        if (nbytes == 0) return 0;
        do failed = fallocate(fd, 0, offset, nbytes); while (failed && errno == EINTR);
        return failed;
    #else
        (void)fd; (void)nbytes; (void)offset;
        return 0;
    #endif
    }

    static int bridge_shared_write(int fd, const char *data, int64_t nbytes, int64_t offset) {
        while (nbytes > 0) {
            ssize_t n = pwrite(fd, data, nbytes > 0x40000000 ? 0x40000000 : (size_t)nbytes, offset);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) { if (n == 0) errno = ENOSPC; return -1; }
            data += n; nbytes -= n; offset += n;
        }
        return 0;
    }
    """
    ctypedef struct Mapping "bridge_shared_mapping":
        char* data
        int64_t nbytes
        uint64_t device
        uint64_t inode
        int fd
        char writable
        char open_to_all

    struct stat_t "stat":
        uint64_t st_dev
        uint64_t st_ino
        int64_t st_size
        unsigned int st_uid
        unsigned int st_mode

    enum:
        F_ADD_SEALS
        F_GET_SEALS
        SEAL_SEAL "BRIDGE_SEAL_SEAL"
        SEAL_SHRINK "BRIDGE_SEAL_SHRINK"
        SEAL_GROW "BRIDGE_SEAL_GROW"
        SEAL_WRITE "BRIDGE_SEAL_WRITE"
        SEAL_FUTURE_WRITE "BRIDGE_SEAL_FUTURE_WRITE"
        O_RDONLY
        O_RDWR
        O_CLOEXEC
        O_NOCTTY
        O_NONBLOCK
        PROT_READ
        PROT_WRITE
        MAP_SHARED

    void* MAP_FAILED
    bint S_ISREG(unsigned int mode) nogil
    unsigned int geteuid() nogil
    int c_stat "stat"(const char* path, stat_t* status) nogil
    int fstat(int fd, stat_t* status) nogil
    int c_open "open"(const char* path, int flags) nogil
    int c_close "close"(int fd) nogil
    int ftruncate(int fd, int64_t nbytes) nogil
    Py_ssize_t c_pread "pread"(int fd, void* to, size_t nbytes, int64_t at) nogil
    int fcntl(int fd, int command, ...) nogil
    void* c_mmap "mmap"(void* at, size_t n, int protection, int flags, int fd, int64_t at_) nogil

    Mapping* find_file "bridge_shared_find"(uint64_t device, uint64_t inode) nogil
    Mapping* find_address "bridge_shared_find_address"(const char* begin, int64_t nbytes) nogil
    Mapping* enter "bridge_shared_enter"(Mapping* mapping) nogil
    void leave "bridge_shared_leave"(Mapping* mapping) nogil
    void unmap "bridge_shared_unmap"(Mapping* mapping) nogil
    int memfd "bridge_shared_memfd"(const char* name) nogil
    int write_all "bridge_shared_write"(int fd, const char* data, int64_t n, int64_t at) nogil
    int reserve "bridge_shared_reserve"(int fd, int64_t n, int64_t at) nogil
    void lock_mappings "bridge_shared_lock_mappings"() nogil
    void unlock_mappings "bridge_shared_unlock_mappings"() nogil


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

    cdef Mapping* mapping

    def __init__(self):
        raise TypeError("A Segment is made by create(), open_segment() or segment_of().")

    def __dealloc__(self):
        if self.mapping != NULL:
            leave(self.mapping)

    @property
    def address(self):
        """The address of the first byte."""
        return <uintptr_t>self.mapping.data

    @property
    def size(self):
        """The number of bytes of the file."""
        return self.mapping.nbytes

    @property
    def fd(self):
        """The descriptor, which belongs to the segment."""
        return self.mapping.fd

    @property
    def file(self):
        """The numbers (device, inode) that the kernel knows the file by."""
        return self.mapping.device, self.mapping.inode

    @property
    def writable(self):
        """Whether this process may write."""
        return bool(self.mapping.writable)

    @property
    def open_to_all(self):
        """Whether every process may write."""
        return bool(self.mapping.open_to_all)

    def read(self, int64_t begin, int64_t nbytes):
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

    def write(self, int64_t begin, bytes data):
        """Copy bytes into a segment that is not sealed yet. Raises MemoryError."""
        cdef int64_t nbytes = PyBytes_GET_SIZE(data)
        _require_inside(self.mapping, begin, nbytes)
        if write_all(self.mapping.fd, PyBytes_AS_STRING(data), nbytes, begin) != 0:
            raise _os_error(errno)

    def write_tensor(self, int64_t begin, TensorImpl source):
        """Copy the elements of a tensor, row-major, into a segment that is not sealed yet.

        Raises MemoryError: no room. EnforceNotMet: `source` has no plain memory.
        """
        cdef TensorImpl target
        cdef char* data
        cdef int64_t nbytes
        cdef int failed = 0
        source = seen(source)
        if source.flags & CONTIGUOUS:
            owner = retained_owner(source, &data, "share")
            nbytes = source.c_numel * source.c_dtype.itemsize
            _require_inside(self.mapping, begin, nbytes)
            if nbytes < RELEASE_GIL_NBYTES:
                failed = write_all(self.mapping.fd, data, nbytes, begin)
            else:
                with nogil:
                    failed = write_all(self.mapping.fd, data, nbytes, begin)
            if failed:
                raise _os_error(errno)
            del owner
            return
        nbytes = checked_mul(source.c_numel, source.c_dtype.itemsize)
        _require_inside(self.mapping, begin, nbytes)
        if reserve(self.mapping.fd, nbytes, begin) != 0:
            raise _os_error(errno)
        target = _impl(self, source.c_dtype, begin, nbytes, False)
        target.set_contiguous(source.c_sizes, source.ndim, source.c_numel)
        copy_elements(target, source, "share")

    def seal(self, bint open_to_all):
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

    def impls(self, bytes table, list types):
        """Return the TensorImpls that a table of rows describes, in a list.

        A row is of int64: type (an index in `types`), first byte of the storage, its number of
        bytes, 1 if it is read-only, offset, number of dimensions, sizes, strides; the offset and
        the strides in elements. What this process may not write is read-only in any case.

        Raises BufferError: they are not all in the segment.
        """
        cdef const int64_t* row = <const int64_t*>PyBytes_AS_STRING(table)
        cdef int64_t words = PyBytes_GET_SIZE(table) // 8
        cdef list found = []
        cdef TensorImpl impl
        cdef int64_t n
        while words > 0:
            n = 6 + 2 * row[5] if words >= 6 and 0 <= row[5] <= 1 << 20 else -1
            if n < 0 or n > words or row[0] < 0 or row[0] >= len(types):
                raise _damaged()
            impl = _from_row(self, row, types[row[0]])
            found.append(impl)
            row += n
            words -= n
        return found


cdef object _damaged():
    return BufferError("The description of the segment's tensors is damaged.")


cdef int _require_inside(Mapping* mapping, int64_t begin, int64_t nbytes) except -1:
    if begin < 0 or nbytes < 0 or begin > mapping.nbytes - nbytes:
        raise BufferError(f"{nbytes} bytes at {begin} are not in the segment.")
    return 0


cdef TensorImpl _impl(
    Segment segment, TypeMeta dtype, int64_t begin, int64_t nbytes, bint readonly,
):
    """Return a TensorImpl without sizes over bytes of the segment."""
    cdef Storage storage = new_storage(DL_CPU, 0)
    cdef TensorImpl impl = new_impl(storage, dtype)
    cdef int flags = EXTERNAL
    if readonly or not segment.mapping.writable:
        flags |= READONLY
    install(storage, segment, segment.mapping.data + begin, dtype, nbytes, flags)
    return impl


cdef TensorImpl _from_row(Segment segment, const int64_t* row, TypeMeta dtype):
    cdef int ndim = <int>row[5]
    cdef const int64_t* sizes = row + 6
    cdef const int64_t* strides = sizes + ndim
    cdef int64_t begin = row[1], nbytes = row[2], offset = row[4]
    cdef int64_t numel = checked_numel(sizes, ndim)
    cdef int64_t low = 0, high = -1
    cdef TensorImpl impl
    if not dtype.c_is_pod or dtype.itemsize <= 0 or numel < 0 or begin < 0 or nbytes < 0 \
            or begin > segment.mapping.nbytes - nbytes \
            or begin % min(<int64_t>8, dtype.itemsize) != 0:
        raise _damaged()
    for i in range(ndim):
        if sizes[i] < 0:
            raise _damaged()
    if numel:
        if extent(sizes, strides, ndim, &low, &high) != 0 or offset < 0 \
                or offset > INT64_MAX - max(high, <int64_t>0) - 1 or offset + low < 0 \
                or checked_mul(offset + high + 1, dtype.itemsize) < 0 \
                or (offset + high + 1) * dtype.itemsize > nbytes:
            raise _damaged()
    impl = _impl(segment, dtype, begin, nbytes, row[3] & 1)
    impl.set_strided(sizes, strides, ndim, numel)
    impl.offset = offset
    return impl


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


def create(int64_t nbytes, name="bridge"):
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


def open_segment(path, file=None, bint of_anyone=False):
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
        raise BufferError(f"{path} is no segment of bridge: it is not a file of memory.")
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


def find_segment(file):
    """Return the Segment that this process has mapped already, by its file; None if it has not."""
    cdef Mapping* mapping = find_file(file[0], file[1])
    return None if mapping == NULL else _use(mapping)


def adopt(int fd, file):
    """Return the Segment of a descriptor that this process was given; it belongs to the Segment.

    Raises FileNotFoundError: it is not open, or another file. BufferError: it is no sealed memfd.
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
            f"{path} is no segment of bridge: it is "
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


def segment_of(TensorImpl impl):
    """Return the Segment that the elements of a tensor in host memory lie in; None if in none.

    A tensor without elements lies in the segment that owns its memory.
    """
    cdef char* data
    cdef Mapping* mapping
    cdef int64_t low = 0, nbytes
    impl = seen(impl)
    if impl.storage is None or impl.storage.device_type != DL_CPU or not impl.c_dtype.c_is_pod:
        return None
    owner = owner_of(impl.storage)
    if type(owner) is Segment:
        return owner
    if not impl.c_numel or not nbytes_of(impl.storage):
        return None
    impl.storage.check()
    data = impl.data("share")
    nbytes = block(<uintptr_t>data, impl.c_sizes, impl.c_strides(), impl.ndim,
                   impl.c_dtype.itemsize, &low)
    if nbytes < 0:
        return None
    mapping = find_address(data + low * impl.c_dtype.itemsize, nbytes)
    return None if mapping == NULL else _use(mapping)


def row_of(Segment segment, TensorImpl impl, types):
    """Return the row of a tensor that lies in `segment`, as `Segment.impls` reads it, as bytes.

    types: the TypeMetas so far, a list that a new one is added to.
    """
    cdef Storage storage
    cdef char* first
    cdef char* begin
    cdef int64_t nbytes, low = 0
    cdef int64_t[6] head
    impl = seen(impl)
    storage = impl.storage
    if impl.c_dtype not in types:
        types.append(impl.c_dtype)
    first = segment.mapping.data
    begin, nbytes = begin_of(storage), nbytes_of(storage)
    head[4] = impl.offset
    if begin < first or begin + nbytes > first + segment.mapping.nbytes:
        # of a storage that reaches farther: the elements themselves
        begin = impl.data("share")
        nbytes = block(<uintptr_t>begin, impl.c_sizes, impl.c_strides(), impl.ndim,
                       impl.c_dtype.itemsize, &low) if impl.c_numel else 0
        begin += low * impl.c_dtype.itemsize
        head[4] = -low
    head[0] = types.index(impl.c_dtype)
    head[1], head[2] = begin - first, nbytes
    head[3] = 1 if flags_of(storage) & READONLY else 0
    head[5] = impl.ndim
    return (PyBytes_FromStringAndSize(<char*>head, sizeof(head))
            + PyBytes_FromStringAndSize(<char*>impl.c_sizes, 16 * impl.ndim))


def in_storage(TensorImpl impl, TensorImpl other):
    """Return a tensor with the sizes of `impl` in the Storage of `other`, which is the same memory.

    Tensors that share a Storage in one process do so in another one.
    """
    cdef TensorImpl found = new_impl(storage_of(other), impl.c_dtype)
    found.set_strided(impl.c_sizes, impl.c_strides(), impl.ndim, impl.c_numel)
    found.offset = impl.offset
    return found
