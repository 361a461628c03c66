# SPDX-License-Identifier: Apache-2.0
"""The blobs of a minidb file or LMDB database as entries, and entries written to one.

A tensor may be in several records, its chunks, in any order. Records are mapped into memory to be
described, which touches their first pages only, and read one at a time: a file larger than the
memory goes through. Chunks are written as the operator Save writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from bridge.c10 import Device, TypeMeta
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.data_types import NUMBERS
from bridge.caffe2.base.wrapped_errors import wrap_error, wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.message import BlobMessage
from bridge.caffe2.blobs.read_tensor import TENSOR_TYPES, content_of, int8_tensor_of
from bridge.caffe2.blobs.serialize import DEFAULT_CHUNK_SIZE, read_blob, serialize, serialize_chunks
from bridge.caffe2.blobs.write_tensor import chunk_message
from bridge.caffe2.conversion.entries import Entries, Entry, blob_of
from bridge.caffe2.files.blob_files import CHUNK_MARK, BlobParts, require_names, require_whole
from bridge.caffe2.files.database_interface import Record, Writer
from bridge.caffe2.files.databases import open_reader
from bridge.caffe2.tensor.tensor import Tensor
from bridge.exchange.import_tensor import import_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from bridge.caffe2.conversion.entries import Buffer

    _Found: TypeAlias = "_Tensor | _Strings | Entry"

_CALLER = "convert"


class _Part:
    """A record with elements [begin, end) of a tensor."""

    __slots__ = ("begin", "end", "record")

    def __init__(self, begin: int, end: int, record: Record) -> None:
        self.begin = begin
        self.end = end
        self.record = record


class _Strings:
    """A tensor of strings: the records that have parts of it."""

    __slots__ = ("nbytes", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.nbytes = 0


class _Tensor:
    """A tensor, described by its first record; it does not keep that in memory."""

    __slots__ = ("dims", "meta", "parts")

    def __init__(self, dims: list[int], meta: TypeMeta) -> None:
        self.dims = dims
        self.meta = meta
        self.parts: list[_Part] = []


class DatabaseEntries(Entries):
    """The entries of a database, in its order.

    Raises EnforceNotMet: it cannot be read, a record is not a blob, or chunks are missing.
    """

    def __init__(self, path: str, db_type: str) -> None:
        self._reader = open_reader(db_type, path)
        super().__init__()

    def close(self) -> None:
        """Close the database. Entries can no longer be read."""
        self._reader.close()

    def _read(self) -> list[Entry]:
        found: dict[str, _Found] = {}
        for record in self._reader.records():
            name = repr(record.key[:80])
            try:
                name = record.key.partition(CHUNK_MARK)[0].decode()
                self._add(found, name, record)
            except Exception as cause:
                raise wrap_error(
                    f"Blob {name!r} cannot be read from {record.where}", _CALLER, cause
                ) from cause
        return [self._entry(name, one) for name, one in found.items()]

    def _entry(self, name: str, one: _Found) -> Entry:
        if isinstance(one, Entry):
            return one
        return _tensor_entry(name, one) if isinstance(one, _Tensor) else self._strings(name, one)

    def _strings(self, name: str, strings: _Strings) -> Entry:
        """Return the entry of a tensor of strings, which is read as the operator Load does."""

        def message() -> bytes:
            parts = BlobParts(Device("cpu"), _CALLER)
            for record in strings.records:
                parts.add(name, record, 0, self._reader.nbytes)
            return serialize(parts.finish()[name], name, _CALLER, name)

        return Entry.of_message(name, "strings", strings.nbytes, message)

    def _add(self, found: dict[str, _Found], name: str, record: Record) -> None:
        view = record.view()
        message = BlobMessage(view)
        before = found.get(name)
        tensor = message.tensor if message.type in TENSOR_TYPES else None
        content = None if tensor is None else content_of(tensor)
        if content is None:
            if before is not None:
                raise EnforceValueError("there is a blob of that name before it")
            found[name] = _other_entry(name, message, record, len(view))
            return
        if not content.meta.is_pod:
            if before is None:
                before = found[name] = _Strings()
            elif not isinstance(before, _Strings):
                raise EnforceValueError("there is a blob of that name before it")
            before.records.append(record)
            before.nbytes += len(view)
            return
        if before is None:
            before = found[name] = _Tensor(content.dims, content.meta)
        elif not isinstance(before, _Tensor) or (before.dims, before.meta) != (
            content.dims,
            content.meta,
        ):
            raise EnforceValueError("a record of it before this one had another shape or type")
        before.parts.append(_Part(content.begin, content.end, record))


def _tensor_entry(name: str, tensor: _Tensor) -> Entry:
    parts = sorted(tensor.parts, key=lambda part: (part.begin, part.end))
    meta, dims = tensor.meta, tensor.dims
    spans = [(part.begin, part.end) for part in parts]
    require_whole(name, spans, math.prod(dims), _CALLER)

    def chunks() -> Iterator[Buffer]:
        for part in parts:
            with wrapping(f"Blob {name!r} cannot be read from {part.record.where}", _CALLER):
                yield from _elements(part, meta)

    nbytes = math.prod(dims) * meta.itemsize
    return Entry(name, meta.name, dims, nbytes, chunks)


def _elements(part: _Part, meta: TypeMeta) -> Iterator[Buffer]:
    """Yield the elements of a record: as they are in it, or decoded."""
    view = part.record.view()
    tensor = BlobMessage(view).tensor
    assert tensor is not None
    content = content_of(tensor)
    if (content.begin, content.end, content.meta) != (part.begin, part.end, meta):
        raise EnforceValueError("the file changed while it was read")
    if content.span is not None and content.meta.name != "bool":
        offset, nbytes = content.span
        yield view[offset : offset + nbytes]
    elif content.end > content.begin:
        values = Tensor([content.end - content.begin], "cpu")
        values.raw_mutable_data(content.meta)
        content.copy_to(values, 0)
        yield memoryview(values).cast("B")


def _other_entry(name: str, message: BlobMessage, record: Record, nbytes: int) -> Entry:
    """Return the entry of a value that is not a tensor of numbers."""
    if message.type == b"Int8TensorCPU":
        quantized = int8_tensor_of(message)

        def chunks() -> Iterator[Buffer]:
            tensor = int8_tensor_of(BlobMessage(record.view())).t
            if tensor.numel():
                yield memoryview(tensor).cast("B")

        return Entry(
            name,
            quantized.t.dtype().name,
            list(quantized.t.sizes()),
            int(quantized.t.nbytes()),
            chunks,
            kind="int8 tensor",
            scale=quantized.scale,
            zero_point=quantized.zero_point,
        )

    def as_message() -> bytes:
        blob = Blob()
        data = record.read()
        read_blob(blob, BlobMessage(data), data)
        return serialize(blob, name, _CALLER, name)

    return Entry.of_message(name, message.type.decode(errors="replace"), nbytes, as_message)


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
