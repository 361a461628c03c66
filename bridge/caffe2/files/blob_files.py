# SPDX-License-Identifier: Apache-2.0
"""Saving blobs to files and loading them, for the operators Save and Load and for checkpoints.

A file is replaced atomically: the existing one stays until the new one is on the disk. A load that
fails changes no blob: all values are read before the first blob gets its own. A loaded blob has new
memory, as in Caffe2: tensors that share the memory of its former value do not see the new one.

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
from bridge.caffe2.files.database_interface import Record
from bridge.caffe2.files.databases import open_reader, open_writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    # The bytes read so far, and the bytes of all files.
    Progress = Callable[[int, int], None]

# Between a blob's name and the number of the chunk, in a key.
_CHUNK = b"#%"
_CPU = Device("cpu")
_WHOLE = 2**62  # elements, more than any tensor has


def require_names(names: Iterable[str], caller: str) -> None:
    """Raise EnforceNotMet, also a ValueError, for names that a file cannot hold.

    They are a name that occurs twice, and one that would be read as the name of a chunk.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise EnforceValueError(
                f"Two blobs would be saved as {name!r}.",
                caller,
                condition="names differ",
            )
        if _CHUNK.decode() in name:
            raise EnforceValueError(
                f"Blob {name!r} would be loaded under another name: '#%' separates a name from the "
                "number of a chunk.",
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
    """Write `blobs` to a file under these names.

    chunk_size: elements of a tensor in one record; -1: 1,000,000, 0: all. Raises EnforceNotMet: a
    blob cannot be serialized, or the file not be written; an existing file is then unchanged.
    """
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
    """Return new blobs with the contents of files, by name, in the order of the files.

    wanted: the names to look for, which ends when all are found; None: all. rename: a function from
    the name in the file to the blob's. device: where tensors go; None: the device in the file.
    progress: called with the bytes read and the bytes of all files. Raises EnforceNotMet: a file
    does not exist or is damaged.
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
    """Return the blob's name in a record's key; None: not a name, and not `needed`."""
    try:
        return rename(record.key.partition(_CHUNK)[0].decode())
    except UnicodeDecodeError as cause:
        if not needed:
            return None
        raise EnforceValueError(
            f"The key {record.key[:80]!r} in {record.where} is not a blob name: it is not UTF-8.",
            caller,
        ) from cause


def stripped(name: str, prefix: str) -> str:
    """Return the part of `name` after `prefix`, which may be in the middle, as in Caffe2."""
    before, found, after = name.partition(prefix) if prefix else (name, "", "")
    return after if found else before


def move_contents(blob: Blob, new: Blob) -> None:
    """Make `blob` hold the contents of `new`, a blob of `read_blobs`."""
    if new._tensor is not None:
        blob._replace(new._tensor)
    else:
        blob._set_object(new._object, new._meta)
