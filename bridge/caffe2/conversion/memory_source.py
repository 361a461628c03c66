# SPDX-License-Identifier: Apache-2.0
"""Blobs in memory as entries, such as those that an init net creates, and entries as blobs."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.annotation import Any
from bridge.c10 import TypeMeta
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.serialize import deserialize, serialize
from bridge.caffe2.conversion.entries import Entries, Entry
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from bridge.caffe2.conversion.entries import Buffer


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
