# SPDX-License-Identifier: Apache-2.0
"""Blobs by name: the part of a workspace that operators, nets and plans need."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.base.names import listed
from bridge.caffe2.blobs.blob import Blob

# Without the GIL a look-up by an equal name counts a reference to the key, in memory that it shares
# with the keys of other threads; interned ones are not counted.
_INTERNED = "t" in getattr(sys, "abiflags", "")


class BlobTable:
    """The base of `Workspace`: its fields.

    Look-ups fall back to the parent; new blobs stay here. A plan's step may run in such a child.
    """

    __slots__ = (
        "__weakref__",
        "_blobs",
        "_failed_position",
        "_nets",
        "_parent",
        "_ready",
        "_root_folder",
    )

    _blobs: dict[str, Blob]
    _root_folder: str
    # The nets created here, each a RunnableNet, by name.
    _nets: dict[str, Any]
    _parent: BlobTable | None
    # Operators on small blobs that RunOperatorOnce may run again, by their definitions.
    _ready: dict[Any, Any]
    # The position in its net of the operator that failed last; 0 if none has failed.
    _failed_position: int

    def __init__(self, parent: BlobTable | None = None) -> None:
        self._blobs = {}
        self._root_folder = "." if parent is None else parent._root_folder
        self._nets = {}
        self._ready = {}
        self._parent = parent
        self._failed_position = 0

    def _remove(self, name: str) -> None:
        """Remove the blob `name`, if there is one."""
        self._ready.clear()  # operators keep their blobs
        self._blobs.pop(name, None)

    def _child(self) -> BlobTable:
        """Return a new table whose parent is this one; `Workspace` returns a Workspace."""
        return BlobTable(self)


def find_blob(table: BlobTable, name: str) -> Blob | None:
    """Return the blob `name` of a table or of its nearest parent that has one, else None."""
    blob = table._blobs.get(name)
    if blob is None and table._parent is not None:
        return find_blob(table._parent, name)
    return blob


def find_or_create(table: BlobTable, name: str) -> Blob:
    """Return the blob `name`, as `find_blob`; if there is none, create an empty one in `table`."""
    blob = find_blob(table, name)
    return put_new(table._blobs, name, Blob()) if blob is None else blob


def input_in(table: BlobTable, name: str) -> Blob:
    """Return the blob `name`, as `find_blob`, an operator's input.

    Raises EnforceNotMet, also a KeyError: there is none.
    """
    blob = find_blob(table, name)
    if blob is None:
        raise EnforceKeyError(
            f"There is no input blob {name!r}; the workspace has {listed(table._blobs)}. Feed "
            "it first by FeedBlob(name, value), or run the operator that writes it.",
            "Operator",
        )
    return blob


def put_new(blobs: dict[str, Blob], name: str, blob: Blob) -> Blob:
    """Return the blob of that name: `blob`, unless another thread has used the name meanwhile."""
    return blobs.setdefault(sys.intern(name) if _INTERNED else name, blob)


def remove_unused(blobs: dict[str, Blob], names: Iterable[str]) -> None:
    """Remove blobs that were created for an operator that did not run, unless others used them."""
    for name in names:
        blob = blobs.get(name)
        if blob is not None and blob._contents() is None:
            blobs.pop(name, None)


def missing_from(table: BlobTable, names: Iterable[str]) -> list[str]:
    """Return those names that no blob has yet."""
    blobs = table._blobs
    return [name for name in names if name not in blobs and find_blob(table, name) is None]


def visible_names(table: BlobTable) -> list[str]:
    """Return the names of the blobs of a table and its parents, sorted."""
    names = set(table._blobs)
    while table._parent is not None:
        table = table._parent
        names.update(table._blobs)
    return sorted(names)
