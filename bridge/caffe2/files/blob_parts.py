# SPDX-License-Identifier: Apache-2.0
"""Assembling blobs from the records of files.

A tensor may be in several records, its chunks, in any order; each has a range of the elements. The
chunks must cover the tensor once, and agree on its shape and type. A tensor is allocated at its
first chunk, and only if the file has at least one byte for each element.

Follows ProcessBlob and validateBlobStates, caffe2/operators/load_save_op_util.cc, PyTorch 1.8.1,
which adds up the sizes of chunks and does not notice one that occurs twice instead of another.
"""

from __future__ import annotations

import math

from bridge.annotation import Any
from bridge.c10 import Device, DeviceType
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrap_error
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.deserialize import read_blob
from bridge.caffe2.blobs.message import BlobMessage, TensorMessage
from bridge.caffe2.blobs.read_tensor import TENSOR_TYPES, device_of
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.files.database_interface import Record

_CPU = Device("cpu")


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
        try:
            data = record.read()
            self._add(name, BlobMessage(data), data, source, limit)
        except Exception as cause:
            raise wrap_error(
                f"Blob {name!r} cannot be loaded from {record.where}", self._caller, cause
            ) from cause

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
            try:
                part.blob.Reset(Tensor(tensor, part.device))
            except Exception as cause:
                raise wrap_error(
                    f"Blob {name!r} cannot be put on {part.device}", self._caller, cause
                ) from cause
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
