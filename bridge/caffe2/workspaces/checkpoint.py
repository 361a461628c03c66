# SPDX-License-Identifier: Apache-2.0
"""save_checkpoint and load_checkpoint: blobs of the current workspace to a file and back."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.caffe2.base.names import name_of
from bridge.caffe2.execution.blob_table import find_or_create
from bridge.caffe2.files.blob_files import move_contents, read_blobs, require_names, write_blobs
from bridge.caffe2.files.databases import path_of
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.named_blobs import find_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.files.blob_files import Progress


def save_checkpoint(
    path: str, names: Iterable[Any], db_type: str = "minidb", chunk_size: int = -1
) -> None:
    """Write blobs of the current workspace to a file, as the operator Save.

    chunk_size: elements of a tensor in one record; -1: 1,000,000, 0: all of them.

    Raises EnforceNotMet: there is no such blob (also a KeyError), Caffe2 has no message for its
    value, or the file cannot be written; an existing file is then unchanged.

    >>> import os, tempfile, numpy as np
    >>> from bridge import caffe2
    >>> from bridge.caffe2 import workspace
    >>> workspace.FeedBlob("w", np.arange(3))
    True
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.minidb")
    ...     caffe2.save_checkpoint(path, ["w"])
    ...     _ = workspace.ResetWorkspace()
    ...     caffe2.load_checkpoint(path)
    ['w']
    >>> workspace.FetchBlob("w")
    array([0, 1, 2])
    """
    caller = "save_checkpoint"
    texts = [name_of(name, caller) for name in names]
    require_names(texts, caller)
    blobs = [find_named(current.workspace, text, caller) for text in texts]
    write_blobs(path_of(path, caller), db_type, texts, blobs, chunk_size, caller)


def load_checkpoint(
    path: str, db_type: str = "minidb", progress: Progress | None = None
) -> list[str]:
    """Load all blobs of a file into the current workspace; return their names in file order.

    Works as the operator Load with `load_all`. Each blob gets memory of its own; memory shared with
    its old value is not written. progress: called with the bytes read so far and the bytes of the
    file.

    Raises EnforceNotMet: the file does not exist, is damaged, or has a record that is not a blob;
    all blobs are then unchanged.
    """
    caller = "load_checkpoint"
    found = read_blobs([path_of(path, caller)], db_type, caller, progress=progress)
    workspace = current.workspace
    for name, blob in found.items():
        move_contents(find_or_create(workspace, name_of(name, caller)), blob)
    return list(found)
