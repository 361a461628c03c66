# SPDX-License-Identifier: Apache-2.0
"""Entries: the blobs of a file, described without their values, which are read in chunks.

Blobs in memory, such as those that an init net creates, can be entries, and entries become blobs.

What files of tensors cannot hold is in texts beside the tensors. ``caffe2.order``: the names of all
blobs in order, as JSON. ``caffe2``: blobs that are not tensors, as Caffe2's messages in base64, by
name. ``caffe2.int8``: the scale and zero point of Int8 tensors.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial

from bridge.annotation import Any, BinaryIO, Self
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.message import BlobMessage
from bridge.caffe2.blobs.read_tensor import TENSOR_TYPES, content_of
from bridge.caffe2.blobs.serialize import deserialize, serialize
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview
    # Called with the bytes done and the bytes of all entries.
    Progress = Callable[[int, int], None]

# A record of Caffe2's files has a million elements, of 1, 2, 4 or 8 bytes: a chunk is whole records
# of any type, which are written without being put together first.
CHUNK_NBYTES = 8_000_000


class Entry:
    """A blob in a file.

    name: of the blob. kind: ``"tensor"``, ``"int8 tensor"``, or the type of another value. dtype:
    the name of the element type, as NumPy's; "" if it is not a tensor. sizes: of a tensor. nbytes:
    of its elements; of anything else, those in the file. scale, zero_point: of an Int8 tensor.
    chunks: a function that yields the elements as they are in memory, in row-major order; a chunk
    is valid until the next one. message: a function that returns another value as Caffe2's
    message, None for tensors.
    """

    __slots__ = (
        "chunks",
        "dtype",
        "kind",
        "message",
        "name",
        "nbytes",
        "scale",
        "sizes",
        "zero_point",
    )

    def __init__(
        self,
        name: str,
        dtype: str,
        sizes: Sequence[int],
        nbytes: int,
        chunks: Callable[[], Iterator[Buffer]],
        *,
        kind: str = "tensor",
        scale: float = 1.0,
        zero_point: int = 0,
        message: Callable[[], bytes] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.dtype = dtype
        self.sizes = tuple(sizes)
        self.nbytes = nbytes
        self.chunks = chunks
        self.scale = scale
        self.zero_point = zero_point
        self.message = message

    @classmethod
    def of_message(cls, name: str, kind: str, nbytes: int, message: Callable[[], bytes]) -> Entry:
        """Return the entry of a value that is not a tensor of numbers."""
        return cls(name, "", (), nbytes, lambda: iter(()), kind=kind, message=message)

    @property
    def numel(self) -> int:
        """The number of elements of a tensor."""
        return math.prod(self.sizes)

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain Python objects, fit for JSON."""
        found: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.dtype:
            found.update(dtype=self.dtype, sizes=list(self.sizes))
        if self.kind == "int8 tensor":
            found.update(scale=self.scale, zero_point=self.zero_point)
        found["nbytes"] = self.nbytes
        return found


class Entries:
    """The entries of an open file, `entries`; a context manager that closes it.

    A subclass opens the file and defines `_read`, which returns them.
    """

    def __init__(self) -> None:
        try:
            self.entries: list[Entry] = self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> list[Entry]:
        raise NotImplementedError

    def close(self) -> None:
        """Close the file. Entries can no longer be read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def read_range(file: BinaryIO, begin: int, nbytes: int, subject: str) -> Iterator[Buffer]:
    """Yield `nbytes` of a file from `begin` on, in chunks that share one buffer.

    Raises EnforceNotMet, also a ValueError: the file is shorter.
    """
    buffer = memoryview(bytearray(min(nbytes, CHUNK_NBYTES)))
    file.seek(begin)
    while nbytes:
        part = buffer[: min(nbytes, CHUNK_NBYTES)]
        found = file.readinto(part)  # type: ignore[attr-defined]
        if not found:
            raise EnforceValueError(f"{subject} ends {nbytes} bytes too early.", "convert")
        nbytes -= found
        yield part[:found]


def with_progress(entries: Sequence[Entry], progress: Progress | None) -> Iterator[Entry]:
    """Yield the entries; `progress` is called as their chunks are read.

    Reading raises EnforceNotMet, also a ValueError, where the chunks are not all of an entry.
    """
    total = sum(entry.nbytes for entry in entries if entry.message is None)
    done = 0

    def counted(entry: Entry) -> Iterator[Buffer]:
        nonlocal done
        rest = entry.nbytes
        for chunk in entry.chunks():
            rest -= len(chunk)
            if rest < 0:  # which would be written over another entry
                break
            yield chunk
            done += len(chunk)
            if progress is not None:
                progress(done, total)
        if rest:
            raise EnforceValueError(
                f"Blob {entry.name!r} has {'more' if rest < 0 else 'fewer'} than the "
                f"{entry.nbytes} bytes of its elements.",
                "convert",
            )

    for entry in entries:
        one = copy(entry)
        one.chunks = partial(counted, entry)
        yield one


_QUANTIZED = ("uint8", "int32")  # the elements that an Int8 tensor may have


def metadata_of(entries: Sequence[Entry]) -> dict[str, str]:
    """Return the texts for entries; empty if they are plain tensors."""
    others = {
        entry.name: base64.b64encode(entry.message()).decode()
        for entry in entries
        if entry.message is not None
    }
    quantized = {
        entry.name: {"scale": entry.scale, "zero_point": entry.zero_point}
        for entry in entries
        if entry.kind == "int8 tensor"
    }
    found = {"caffe2.order": json.dumps([entry.name for entry in entries])}
    if others:
        found["caffe2"] = json.dumps(others)
    if quantized:
        found["caffe2.int8"] = json.dumps(quantized)
    return found


def with_metadata(tensors: Sequence[Entry], texts: Mapping[str, str]) -> list[Entry]:
    """Return the entries of a file of tensors and these texts, in the order of the blobs.

    Raises EnforceNotMet, also a ValueError: the texts are not from `metadata_of`.
    """
    try:
        found = {entry.name: entry for entry in tensors}
        for name, factors in json.loads(texts.get("caffe2.int8", "{}")).items():
            _quantize(found[name], float(factors["scale"]), int(factors["zero_point"]))
        for name, text in json.loads(texts.get("caffe2", "{}")).items():
            found[name] = _other(name, base64.b64decode(text, validate=True))
        order = json.loads(texts.get("caffe2.order", "[]"))
        return [found.pop(name) for name in order if name in found] + list(found.values())
    except (
        *(AttributeError, KeyError, TypeError, ValueError),
        *(OverflowError, RecursionError),  # of infinite factors, of lists in lists
    ) as cause:
        raise EnforceValueError(
            f"The metadata on Caffe2's blobs is damaged: {str(cause).rstrip('.')}.", "convert"
        ) from cause


def _quantize(entry: Entry, scale: float, zero_point: int) -> None:
    """Turn the entry of a tensor into the entry of an Int8 tensor."""
    if entry.dtype not in _QUANTIZED:
        raise ValueError(f"{entry.name!r} of {entry.dtype} cannot be an Int8 tensor")
    if not -(2**31) <= zero_point < 2**31:
        raise ValueError(f"the zero point {zero_point} of {entry.name!r} is not an int32")
    entry.kind, entry.scale, entry.zero_point = "int8 tensor", scale, zero_point


def _other(name: str, message: bytes) -> Entry:
    """Return the entry of a blob that is not a tensor of numbers, as a database would have it."""
    read = BlobMessage(message)
    tensor = read.tensor if read.type in TENSOR_TYPES else None
    content = None if tensor is None else content_of(tensor)
    if read.type == b"Int8TensorCPU" or (content is not None and content.meta.is_pod):
        raise ValueError(f"{name!r} is a message of numbers, which belong to the file's tensors")
    kind = "strings" if content is not None else read.type.decode(errors="replace")
    return Entry.of_message(name, kind, len(message), lambda: message)


class BlobEntries(Entries):
    """The entries of blobs, by name."""

    def __init__(self, blobs: Mapping[str, Blob]) -> None:
        self.entries: list[Entry] = [_entry(name, blob) for name, blob in blobs.items()]


def _entry(name: str, blob: Blob) -> Entry:
    contents: Any = blob._tensor if blob._tensor is not None else blob._object
    quantized = contents if isinstance(contents, Int8TensorCPU) else None
    tensor: Any = quantized.t if quantized is not None else blob._tensor
    if tensor is None or not tensor.dtype() or not tensor.dtype().is_pod:
        message = serialize(blob, name, "convert", name)
        kind = "strings" if tensor is not None else type(contents).__name__
        return Entry.of_message(name, kind, len(message), lambda: message)

    def chunks() -> Iterator[Buffer]:
        if tensor.numel():
            yield memoryview(tensor).cast("B")

    entry = Entry(name, tensor.dtype().name, list(tensor.sizes()), int(tensor.nbytes()), chunks)
    if quantized is not None:
        entry.kind = "int8 tensor"
        entry.scale, entry.zero_point = quantized.scale, quantized.zero_point
    return entry


def blob_of(entry: Entry) -> Blob:
    """Return a new blob with the value of an entry. Raises EnforceNotMet: it is damaged."""
    blob = Blob()
    if entry.message is not None:
        deserialize(blob, entry.message(), f"Blob {entry.name!r}", "convert")
        return blob
    tensor = Tensor(list(entry.sizes), "cpu")
    tensor.raw_mutable_data(TypeMeta.Make(entry.dtype))
    if entry.numel:
        room = memoryview(tensor).cast("B")
        at = 0
        for chunk in entry.chunks():
            room[at : at + len(chunk)] = chunk
            at += len(chunk)
    if entry.kind == "int8 tensor":
        quantized = Int8TensorCPU(tensor, entry.scale, entry.zero_point)
        blob._set_object(quantized, TypeMeta.Make(Int8TensorCPU))
    else:
        blob._replace(tensor)
    return blob
