# SPDX-License-Identifier: Apache-2.0
"""The Mappings of this process, and the calls of the system that make them.

Only `bridge.shared.segment` cimports this: a module that did would have a table of its own.
"""

from libc.stdint cimport int64_t, uint64_t

from bridge.shared.mapping cimport Mapping

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

    #define BRIDGE_PLACES 128
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
    int reserve_room "bridge_shared_reserve"(int fd, int64_t n, int64_t at) nogil
    void lock_mappings "bridge_shared_lock_mappings"() nogil
    void unlock_mappings "bridge_shared_unlock_mappings"() nogil
