# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""BlobMap: the blobs of a workspace by name.

Compiled, since ``Workspace.blobs`` makes one at each use: ``Workspace.current.blobs["x"]`` takes
160 nanoseconds, with a class in Python 470. tests/benchmarks/real_caffe2.py has the limit.
"""

from collections.abc import ItemsView, KeysView, Mapping, ValuesView

from cpython.unicode cimport PyUnicode_CheckExact

from bridge.c10.python_api cimport find_in

from bridge.caffe2.execution.blob_table import find_blob, visible_names
from bridge.caffe2.workspaces.named_blobs import find_named


cdef class BlobMap:
    """The blobs that a workspace sees by name: a live view, for reading, in the order of names.

    Raises EnforceNotMet, also a KeyError: there is no such blob.
    """

    # pyi: __hash__: ClassVar[None]  # type: ignore[assignment]
    # pyi: def __new__(cls, workspace: BlobTable) -> Self: ...
    cdef object _workspace
    cdef dict _blobs            # the workspace's own, of which there is one dict for all its life

    def __cinit__(self, workspace):
        self._workspace = workspace
        self._blobs = workspace._blobs

    def __getitem__(self, name: Any) -> Blob:
        if PyUnicode_CheckExact(name):
            found = find_in(self._blobs, name)
            if found is not None:
                return found
        return find_named(self._workspace, name, "Workspace.blobs")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find_blob(self._workspace, name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(visible_names(self._workspace))

    def __len__(self) -> int:
        return len(visible_names(self._workspace))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self.items()) == dict(other.items())

    __hash__ = None

    def get(self, name: Any, default: Any = None) -> Any:
        """Return the blob `name`, or `default` if there is none."""
        try:
            return self[name]
        except KeyError:
            return default

    def keys(self) -> KeysView[str]:
        """Return a view of the names."""
        return KeysView(self)

    def values(self) -> ValuesView[Blob]:
        """Return a view of the blobs."""
        return ValuesView(self)

    def items(self) -> ItemsView[str, Blob]:
        """Return a view of the names with the blobs."""
        return ItemsView(self)

    def __repr__(self):
        return repr(dict(self))


Mapping.register(BlobMap)
