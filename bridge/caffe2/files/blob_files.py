# SPDX-License-Identifier: Apache-2.0
"""Saving blobs to files and loading them, for the operators Save and Load and for checkpoints.

A file is replaced atomically: the existing one stays until the new one is on the disk. A load that
fails changes no blob: all values are read before the first blob gets its own. A loaded blob has new
memory, as in Caffe2: tensors that share the memory of its former value do not see the new one.

A tensor may be in several records, its chunks, in any order; each has a range of the elements. The
chunks must cover the tensor once, and agree on its shape and type. A tensor is allocated at its
first chunk, and only if the file has at least one byte for each element.

Follows caffe2/operators/load_save_op.h and load_save_op_util.cc, PyTorch 1.8.1, which adds up the
sizes of chunks and does not notice one that occurs twice instead of another.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence, Set

from bridge.annotation import Any
from bridge.c10 import Device, DeviceType
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.message import BlobMessage, TensorMessage
from bridge.caffe2.blobs.read_tensor import TENSOR_TYPES, device_of
from bridge.caffe2.blobs.serialize import DEFAULT_CHUNK_SIZE, read_blob, serialize_chunks
from bridge.caffe2.files.database_interface import Record
from bridge.caffe2.files.databases import open_reader, open_writer
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    # The bytes read so far, and the bytes of all files.
    Progress = Callable[[int, int], None]

# Between a blob's name and the number of the chunk, in a key.
CHUNK_MARK = b"#%"
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
        if CHUNK_MARK.decode() in name:
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
        return rename(record.key.partition(CHUNK_MARK)[0].decode())
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


class _Part:
    """One blob so far; `total` and `found` count a tensor's elements, and are 0 for other blobs."""

    __slots__ = ("blob", "description", "device", "found", "source", "spans", "total")

    def __init__(self, source: int, device: Device) -> None:
        self.blob = Blob()
        self.source = source
        self.device = device
        self.total = 0
        self.found = 0
        self.spans: list[tuple[int, int]] = []
        self.description: tuple[list[int], int] | None = None

    def complete(self) -> bool:
        """Return whether all elements were found."""
        return self.found == self.total


class BlobParts:
    """The blobs that a load has read so far, by name.

    device: where tensors go; None: the device in the file. caller: the caller in errors.
    """

    def __init__(self, device: Device | None, caller: str) -> None:
        self._device = device
        self._caller = caller
        self._parts: dict[str, _Part] = {}
        # The number of blobs that are complete.
        self.complete = 0

    def add(self, name: str, record: Record, source: int, limit: int) -> None:
        """Add a record of blob `name`, from file number `source`, which has `limit` bytes.

        Raises EnforceNotMet: it is not a BlobProto, or contradicts the records before it.
        """
        with wrapping(f"Blob {name!r} cannot be loaded from {record.where}", self._caller):
            data = record.read()
            self._add(name, BlobMessage(data), data, source, limit)

    def _add(self, name: str, message: BlobMessage, data: Any, source: int, limit: int) -> None:
        part = self._parts.get(name)
        if part is not None and part.source != source:
            raise EnforceValueError("there is a blob of that name in another file")
        tensor = message.tensor if message.type in TENSOR_TYPES else None
        if tensor is None:
            if part is not None:
                raise EnforceValueError("there is a blob of that name before it")
            part = _Part(source, _CPU)
        else:
            part = self._with_chunk(part, tensor, source, limit)
        read_blob(part.blob, message, data, _CPU)
        self._parts[name] = part
        if part.complete():
            self.complete += 1

    def _with_chunk(
        self, part: _Part | None, tensor: TensorMessage, source: int, limit: int
    ) -> _Part:
        """Check a chunk against the chunks before it, and add its range."""
        total = math.prod(tensor.dims)
        begin, end = (0, total) if tensor.segment is None else tensor.segment
        description = (tensor.dims, tensor.data_type)
        if part is None:
            if end - begin < total and total > limit:
                raise EnforceValueError(
                    f"it is part of a tensor of {total} elements, more than the file has bytes"
                )
            part = _Part(source, self._device or device_of(tensor))
            part.total = total
            part.description = description
        elif part.description is None:
            raise EnforceValueError("there is a blob of that name before it, which is not a tensor")
        elif part.description != description:
            raise EnforceValueError(
                "a chunk of it before this one had another shape or type: "
                f"{part.description[0][:8]}, type number {part.description[1]}; this one: "
                f"{description[0][:8]}, {description[1]}"
            )
        elif part.complete() or part.found + end - begin > total:
            raise EnforceValueError(f"this chunk has elements beyond the {total} of the tensor")
        part.found += end - begin
        part.spans.append((begin, end))
        return part

    def finish(self) -> dict[str, Blob]:
        """Return the blobs, in the order of the files.

        Raises EnforceNotMet: chunks are missing or duplicate, or a device has no memory.
        """
        return {name: self._finished(name, part) for name, part in self._parts.items()}

    def _finished(self, name: str, part: _Part) -> Blob:
        require_whole(name, part.spans, part.total, self._caller)
        if part.device.type != DeviceType.CPU:
            tensor = part.blob.Get(Tensor)
            with wrapping(f"Blob {name!r} cannot be put on {part.device}", self._caller):
                part.blob.Reset(Tensor(tensor, part.device))
        return part.blob


def require_whole(name: str, spans: list[tuple[int, int]], total: int, caller: str) -> None:
    """Raise EnforceNotMet, also a ValueError, unless spans are all elements, each once.

    spans: [begin, end) of the chunks of a tensor of `total` elements.
    """
    at = 0
    for begin, end in sorted(spans):
        if begin != at:
            break
        at = end
    found = sum(end - begin for begin, end in spans)
    if at != total or found != total:
        raise EnforceValueError(
            f"Blob {name!r} is incomplete: chunks with {found} of its {total} elements were found, "
            f"and none that begins at element {at}.",
            caller,
            condition="chunks are whole",
        )
