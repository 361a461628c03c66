# SPDX-License-Identifier: Apache-2.0
cimport bridge.c10.python_api   # BRIDGE_LOAD

from bridge.c10.python_api cimport find_in

# Which workspace is the current one, and which names workspaces have.
cdef class Current:
    cdef readonly object workspace      # a Workspace
    cdef readonly dict blobs            # its own blobs by name, for the functions called most
    cdef readonly dict ready            # its operators that may run again, by their definitions
    cdef readonly str name              # the name that was switched to last
    cdef public dict workspaces         # by name
    cdef readonly object lock           # acquired to change the above
    cdef int set_name(self, str name) except -1
    cpdef int enter(self, object workspace) except -1

cdef extern from *:
    """
    #define BRIDGE_WORKSPACE(current) BRIDGE_LOAD(current, workspace)
    #define BRIDGE_NAME(current) BRIDGE_LOAD(current, name)
    #define BRIDGE_BLOBS(current) BRIDGE_LOAD(current, blobs)
    #define BRIDGE_READY(current) BRIDGE_LOAD(current, ready)
    """
    object workspace_of "BRIDGE_WORKSPACE"(Current)
    str name_of "BRIDGE_NAME"(Current)
    dict blobs_of "BRIDGE_BLOBS"(Current)
    dict ready_of "BRIDGE_READY"(Current)


cdef inline object find_blob_in(Current current, object name):
    """Return the blob of a name, a str; None: there is none."""
    return find_in(blobs_of(current), name)


cdef inline object find_ready(Current current, object definition):
    """Return the operator of a definition that may run again; None: there is none."""
    return find_in(ready_of(current), definition)
