# SPDX-License-Identifier: Apache-2.0
# Which workspace is the current one, and which names workspaces have.
cdef class Current:
    cdef readonly object workspace      # a Workspace
    cdef readonly dict blobs            # its own blobs by name, for the functions called most
    cdef readonly dict ready            # its operators that may run again, by their definitions
    cdef readonly str name              # the name that was switched to last
    cdef public dict workspaces         # by name
    cdef readonly object lock           # acquired to change the above
