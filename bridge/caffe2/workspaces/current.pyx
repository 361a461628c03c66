# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The current workspace: one for the whole process, a switch in one thread is a switch for all.

Compiled so that FeedBlob and RunOperatorOnce read it in C. The first workspace is put here by the
module that defines the class, `bridge.caffe2.workspaces.workspace`.
"""

import threading

cimport cython

from bridge.c10.python_api cimport make_immortal


cdef class Current:
    """The process-wide state of workspaces; `current` is the only instance.

    workspace, blobs: the current workspace and its own blobs by name. ready: its operators that may
    run again. name: the name that was switched to last. workspaces: every workspace that has a
    name. lock: an RLock, held while these change; destroying a blob may run Python code that
    changes them again in the same thread.
    """

    # pyi: workspaces: dict[str, BlobTable]
    # pyi: @property
    # pyi: def workspace(self) -> BlobTable: ...
    # pyi: @property
    # pyi: def blobs(self) -> dict[str, Blob]: ...
    # pyi: @property
    # pyi: def ready(self) -> dict[DefinitionCore, OperatorCore]: ...
    # pyi: @property
    # pyi: def lock(self) -> threading.RLock: ...
    def __cinit__(self):
        self.workspaces = {}
        self.lock = threading.RLock()

    def put(self, str name not None, workspace not None: BlobTable) -> None:
        """Set `workspace` as the workspace of that name and as the current one."""
        self.workspaces[name] = workspace
        self.set_name(name)
        self.enter(workspace)

    @cython.critical_section
    cdef int set_name(self, str name) except -1:
        self.name = name
        return 0

    cpdef int enter(self, object workspace: BlobTable) except -1:
        """Set `workspace` as the current one, without an allocation; the other fields stay."""
        cdef dict blobs = workspace._blobs
        cdef dict ready = workspace._ready
        # the old workspace is destroyed, if at all, after all fields have been set
        with cython.critical_section(self):
            _workspace, _blobs, _ready = self.workspace, self.blobs, self.ready
            self.workspace = workspace
            self.blobs = blobs
            self.ready = ready
        return 0


cdef Current _current = Current()   # for good
current = _current  # pyi: Current
make_immortal(current)


cdef class Outside:
    """Remembers the current workspace, and goes back to it: the base of `WorkspaceGuard`'s result.

    Going back allocates nothing, so that it cannot fail.
    """
    cdef tuple before   # the name, None if it has none; the workspace; the same of an outer one

    def _remember(self) -> None:
        """Remember the workspace that is the current one."""
        workspace = workspace_of(_current)
        name = name_of(_current)
        is_named = _current.workspaces.get(name) is workspace
        self.before = (name if is_named else None, workspace, self.before)

    def _forget(self) -> None:
        """Forget the last remembered workspace."""
        self.before = <tuple>self.before[2]

    # pyi: def __exit__(self, kind: object, error: object, traceback: object, /) -> None: ...
    def __exit__(self, kind, error, traceback):
        cdef tuple before = self.before
        name, workspace = before[0], before[1]
        self.before = <tuple>before[2]
        _current.lock.acquire()
        try:
            if name is not None:
                workspace = _current.workspaces[name]
                _current.set_name(<str>name)
            _current.enter(workspace)
        finally:
            _current.lock.release()
