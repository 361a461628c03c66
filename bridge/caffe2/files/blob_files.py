# SPDX-License-Identifier: Apache-2.0
"""Blobs to files and back: what the operators Save and Load do, and functions for it.

A file is written whole or not at all: an old one is there until the new one is on the disk. A
`load_checkpoint` that fails leaves every blob as it was: the new values stand beside the old ones
until all of them have been read. Each blob then holds a value of its own, as in Caffe2: memory that
somebody shares with the old value is not written.

Follows caffe2/operators/load_save_op.h and load_save_op_util.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence, Set

from bridge.c10 import Device
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.serialize import DEFAULT_CHUNK_SIZE, serialize_chunks
from bridge.caffe2.files.blob_parts import BlobParts
from bridge.caffe2.files.databases import open_reader, open_writer
from bridge.caffe2.files.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    # Bytes of all files that have been read, and all that there are.
    Progress = Callable[[int, int], None]

__all__ = [
    "hold",
    "read_blobs",
    "require_names",
    "stripped",
    "write_blobs",
]

# Between a blob's name and the number of the chunk, in a key.
_CHUNK = b"#%"
_CPU = Device("cpu")
_WHOLE = 2**62  # elements: more than any tensor has


def require_names(names: Iterable[str], caller: str) -> None:
    """Check the names of blobs in a file. Raises EnforceNotMet: one is there twice, or misread."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise EnforceValueError(
                f"Two blobs would be saved by the name {name!r}.", caller, condition="names differ"
            )
        if _CHUNK.decode() in name:
            raise EnforceValueError(
                f"Blob {name!r} would be loaded by another name: what follows '#%' is the number "
                "of a chunk.",
                caller,
            )
        seen.add(name)


def write_blobs(
    path: str,
    db_type: str,
    names: Sequence[str],
    blobs: Sequence[Blob],
    chunk_size: int,
    caller: str,
) -> None:
    """Write `blobs`, by these names, to a new file. Raises EnforceNotMet; see the module."""
    if chunk_size == -1:
        chunk_size = DEFAULT_CHUNK_SIZE
    elif chunk_size <= 0:
        chunk_size = _WHOLE
    with open_writer(db_type, path) as db:
        for name, blob in zip(names, blobs, strict=True):
            for key, message in serialize_chunks(blob, name, chunk_size, caller, name):
                db.put(key, message)


def read_blobs(
    paths: Sequence[str],
    db_type: str,
    caller: str,
    wanted: Set[str] | None = None,
    rename: Callable[[str], str] = str,
    device: Device | None = _CPU,
    progress: Progress | None = None,
) -> dict[str, Blob]:
    """Make new blobs of what is in files, by their names after `rename`, in the files' order.

    wanted: the names to look for, until all are there; None: everything. device: where tensors go;
    None: where they were. Raises EnforceNotMet; see `load_checkpoint`.
    """
    parts = BlobParts(device, caller)
    total = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
    before = 0
    for source, path in enumerate(paths):
        with open_reader(db_type, path) as db:
            for record in db.records():
                name = _name_in(record, wanted is None, rename, caller)
                if name is not None and (wanted is None or name in wanted):
                    parts.add(name, record, source, db.nbytes)
                    if wanted is not None and parts.complete == len(wanted):
                        break
                if progress is not None:
                    progress(before + record.end, max(total, before + record.end))
            before += db.nbytes
    return parts.finish()


def _name_in(record: Record, needed: bool, rename: Callable[[str], str], caller: str) -> str | None:
    """Return the blob's name in a key; None: it is no name, and not needed."""
    try:
        return rename(record.key.partition(_CHUNK)[0].decode())
    except UnicodeDecodeError as cause:
        if not needed:
            return None
        raise EnforceValueError(
            f"The key {record.key[:80]!r} in {record.where} is no name of a blob: it is not UTF-8.",
            caller,
        ) from cause


def stripped(name: str, prefix: str) -> str:
    """Return what follows the first `prefix` in `name`, which Caffe2 finds in the middle, too."""
    before, found, after = name.partition(prefix) if prefix else (name, "", "")
    return after if found else before


def hold(blob: Blob, new: Blob) -> None:
    """Make `blob` hold what `new`, of `read_blobs`, holds, in place of what it held."""
    if new._tensor is not None:
        blob._replace(new._tensor)
    else:
        blob._set_object(new._object, new._meta)
