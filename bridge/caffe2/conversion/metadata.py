# SPDX-License-Identifier: Apache-2.0
"""The parts that files of tensors cannot hold, as texts beside the tensors.

``caffe2.order``: the names of all blobs in order, as JSON. ``caffe2``: blobs that are not tensors,
as Caffe2's messages in base64, by name. ``caffe2.int8``: the scale and zero point of Int8 tensors.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.conversion.entries import Entry

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
    from bridge.caffe2.blobs.message import BlobMessage
    from bridge.caffe2.blobs.read_tensor import TENSOR_TYPES, content_of

    read = BlobMessage(message)
    tensor = read.tensor if read.type in TENSOR_TYPES else None
    content = None if tensor is None else content_of(tensor)
    if read.type == b"Int8TensorCPU" or (content is not None and content.meta.is_pod):
        raise ValueError(f"{name!r} is a message of numbers, which belong to the file's tensors")
    kind = "strings" if content is not None else read.type.decode(errors="replace")
    return Entry.of_message(name, kind, len(message), lambda: message)
