# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The current workspace: one for the whole process, a switch in one thread is a switch for all.

Compiled so that FeedBlob and RunOperatorOnce read it in C. The first workspace is put here by the
module that defines the class, `bridge.caffe2.workspaces.workspace`.
"""

import threading

cimport cython
from libc.stdlib cimport calloc

from bridge.c10.python_api cimport FREE_THREADED, make_immortal

cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_PUBLISH() __atomic_thread_fence(__ATOMIC_RELEASE)
    #else
    #define BRIDGE_PUBLISH() ((void)0)
    #endif
    """
    # Let other threads see what was written before when they see what is written after.
    void publish "BRIDGE_PUBLISH"() noexcept


cdef class Current:
    """The process-wide state of workspaces; `current` is the only instance.

    workspace, blobs: the current workspace and its own blobs by name. ready: its
    operators that may run again. name: the name that was
    switched to last. workspaces: every workspace that has a name. lock: an RLock, held while these
    change; destroying a blob may run Python code that changes them again in the same thread.
    """

    def __cinit__(self):
        self.workspaces = {}
        self.lock = threading.RLock()
        if FREE_THREADED:
            self.readers = <long*>calloc(1, READERS_NBYTES)
            if self.readers == NULL:
                raise MemoryError()

    def put(self, str name not None, workspace not None):
        """Set `workspace` as the workspace of that name and as the current one."""
        self.workspaces[name] = workspace
        self.name = name
        self.enter(workspace)

    def enter(self, workspace not None):
        """Set `workspace` as the current one; `name` and `workspaces` stay as they are."""
        cdef dict blobs = workspace._blobs
        cdef dict ready = workspace._ready
        # destroyed, if at all, after all fields have been set
        _before = self.workspace, self.blobs, self.ready
        publish()       # the dicts: look-ups take no lock and no reference
        with cython.critical_section(self):
            self.workspace = workspace
            self.blobs = blobs
            self.ready = ready
        with nogil:
            while FREE_THREADED and is_read(self.readers):
                usleep(10)


current = Current()     # for good
make_immortal(current)
