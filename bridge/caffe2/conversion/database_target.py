# SPDX-License-Identifier: Apache-2.0
"""Entries written to Caffe2's databases, in chunks as the operator Save writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.data_types import NUMBERS
from bridge.caffe2.blobs.serialize import DEFAULT_CHUNK_SIZE, serialize_chunks
from bridge.caffe2.blobs.write_tensor import chunk_message
from bridge.caffe2.conversion.entries import Entry
from bridge.caffe2.conversion.memory_source import blob_of
from bridge.caffe2.files.blob_files import require_names
from bridge.caffe2.files.database_interface import Writer
from bridge.caffe2.tensor.tensor import Tensor
from bridge.exchange.import_tensor import import_tensor

_CALLER = "convert"


def write_records(db: Writer, entries: Sequence[Entry], streams: Iterable[Entry]) -> None:
    """Write entries to a database; `streams` yields them with their values.

    Raises EnforceNotMet: names that a file cannot hold (also a ValueError), elements that Caffe2
    does not have (also a TypeError), or the disk is full.
    """
    require_names([entry.name for entry in entries], _CALLER)
    for entry in entries:
        if entry.message is None and _type_name(entry) not in NUMBERS:
            raise EnforceTypeError(
                f"Caffe2's files have no elements of {entry.dtype}, as {entry.name!r} has.", _CALLER
            )
    for entry in streams:
        for key, parts in _records(entry):
            db.put(key, *parts)


def _type_name(entry: Entry) -> str | None:
    try:
        return TypeMeta.Make(entry.dtype).name
    except TypeError:
        return None


def _records(entry: Entry) -> Iterator[tuple[bytes, tuple[bytes | memoryview, ...]]]:
    """Yield the records of an entry: each key, and the parts of its value."""
    name = entry.name.encode()
    if entry.message is not None or entry.kind == "int8 tensor":
        blob = blob_of(entry)
        chunks = serialize_chunks(blob, entry.name, DEFAULT_CHUNK_SIZE, _CALLER, entry.name)
        yield from ((key, (message,)) for key, message in chunks)
    else:
        for index, (begin, values) in enumerate(_parts(entry, DEFAULT_CHUNK_SIZE)):
            yield b"%s#%%%d" % (name, index), chunk_message(values, entry.sizes, name, begin)


def _parts(entry: Entry, size: int) -> Iterator[tuple[int, Tensor]]:
    """Yield the elements of an entry as tensors of `size` elements, the last one of fewer.

    Each comes with the position of its first element, and is valid until the next one; an empty
    entry is one empty tensor. A chunk of the source with all elements of a part is not copied.
    """
    import numpy as np

    dtype = np.dtype(entry.dtype)
    begin = filled = 0
    room = bytearray()
    for chunk in entry.chunks() if entry.numel else ():
        rest = memoryview(chunk).cast("B")
        while len(rest):
            n = min(size, entry.numel - begin)
            nbytes = n * dtype.itemsize
            if not filled and len(rest) >= nbytes:
                part, rest = rest[:nbytes], rest[nbytes:]
            else:
                if len(room) != nbytes:
                    room = bytearray(nbytes)
                taken = rest[: nbytes - filled]
                room[filled : filled + len(taken)] = taken
                filled += len(taken)
                rest = rest[len(taken) :]
                if filled < nbytes:
                    break
                part, filled = memoryview(room), 0
            yield begin, Tensor._wrap(import_tensor(np.frombuffer(part, dtype)))
            begin += n
    if not entry.numel:
        yield 0, Tensor._wrap(import_tensor(np.empty(0, dtype)))
