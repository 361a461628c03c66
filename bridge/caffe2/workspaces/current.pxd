# SPDX-License-Identifier: Apache-2.0
cimport bridge.c10.python_api   # BRIDGE_LOAD

# Which workspace is the current one, and which names workspaces have.
cdef class Current:
    cdef readonly object workspace      # a Workspace
    cdef readonly dict blobs            # its own blobs by name, for the functions called most
    cdef readonly dict ready            # its operators that may run again, by their definitions
    cdef readonly str name              # the name that was switched to last
    cdef public dict workspaces         # by name
    cdef readonly object lock           # acquired to change the above
    cdef long* readers                  # see `find_blob_in`; NULL with the GIL
    cdef int set_name(self, str name) except -1
    cdef int set_current(self, object workspace) except -1

# Threads that feed blobs of their own share nothing that changes, not even a count of references:
# without the GIL that would make two of them as slow as one. So `find_blob_in` and `find_ready`
# take no reference to the dict, and `enter` waits until no thread is inside one of them. A thread
# counts itself in one of many counts, each in a cache line of its own.
cdef extern from *:
    """
    #ifndef BRIDGE_READERS
    #define BRIDGE_READERS 64                   /* counts */
    #define BRIDGE_READERS_STEP 16              /* longs from one to the next */
    #ifdef Py_GIL_DISABLED
    static CYTHON_UNUSED PyObject *bridge_find_shared(
            long *readers, PyObject **field, PyObject *key) {
        PyObject *found;
        size_t place = (size_t)((uintptr_t)PyThreadState_Get() * 0x9E3779B97F4A7C15u >> 58);
        long *count = readers + (place % BRIDGE_READERS) * BRIDGE_READERS_STEP;
        __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
        int answer = PyDict_GetItemRef(__atomic_load_n(field, __ATOMIC_SEQ_CST), key, &found);
        __atomic_sub_fetch(count, 1, __ATOMIC_SEQ_CST);
        return answer > 0 ? found : answer < 0 ? NULL : Py_NewRef(Py_None);
    }
    #define BRIDGE_FIND_SHARED(current, field, key) \\
        bridge_find_shared((current)->readers, &(current)->field, key)
    static CYTHON_UNUSED int bridge_is_read(long *readers) {
        for (int i = 0; i < BRIDGE_READERS; ++i)
            if (__atomic_load_n(readers + i * BRIDGE_READERS_STEP, __ATOMIC_SEQ_CST)) return 1;
        return 0;
    }
    #else
    #define BRIDGE_FIND_SHARED(current, field, key) bridge_find((current)->field, key)
    #define bridge_is_read(readers) 0
    #endif
    #define BRIDGE_FIND_BLOB(current, key) BRIDGE_FIND_SHARED(current, blobs, key)
    #define BRIDGE_FIND_READY(current, key) BRIDGE_FIND_SHARED(current, ready, key)
    #define BRIDGE_WORKSPACE(current) BRIDGE_LOAD(current, workspace)
    #define BRIDGE_NAME(current) BRIDGE_LOAD(current, name)
    #define BRIDGE_BLOBS(current) BRIDGE_LOAD(current, blobs)
    #define BRIDGE_KEPT(current) BRIDGE_LOAD(current, ready)
    #endif
    """
    # Return the blob of a name, a str; None: there is none.
    object find_blob_in "BRIDGE_FIND_BLOB"(Current, object name)
    # Return the operator of a definition that may run again; None: there is none.
    object find_ready "BRIDGE_FIND_READY"(Current, object definition)
    object workspace_of "BRIDGE_WORKSPACE"(Current)
    str name_of "BRIDGE_NAME"(Current)
    dict blobs_of "BRIDGE_BLOBS"(Current)
    dict ready_of "BRIDGE_KEPT"(Current)
    bint is_read "bridge_is_read"(long* readers) nogil
    enum:
        READERS_NBYTES "(BRIDGE_READERS * BRIDGE_READERS_STEP * sizeof(long))"
