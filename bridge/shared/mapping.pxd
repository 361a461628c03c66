# SPDX-License-Identifier: Apache-2.0
"""The memory of a segment in this process: a range of addresses, and a descriptor."""

from libc.stdint cimport int64_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>

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
    """
    ctypedef struct Mapping "bridge_shared_mapping":
        char* data
        int64_t nbytes
        uint64_t device
        uint64_t inode
        int fd
        char writable
        char open_to_all
