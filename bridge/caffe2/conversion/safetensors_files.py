# SPDX-License-Identifier: Apache-2.0
"""Safetensors files, read and written as streams; the package safetensors is not needed.

A file is a length of 8 bytes, a header in JSON with the type, sizes and place of each tensor, and
the tensors' bytes, one after the other, in any order. Tensors of larger elements come first, so
that all are aligned.

Follows https://github.com/huggingface/safetensors, format of version 0.4.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence

from bridge.annotation import Any, BinaryIO
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.conversion.entries import Entries, Entry, metadata_of, read_range, with_metadata

_CALLER = "convert"
_MAX_HEADER = 100_000_000  # bytes; the limit of the package safetensors
_TYPES = {
    "F64": ("float64", 8),
    "F32": ("float32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "C64": ("complex64", 8),
    "I64": ("int64", 8),
    "I32": ("int32", 4),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U64": ("uint64", 8),
    "U32": ("uint32", 4),
    "U16": ("uint16", 2),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
}
_CODES = {name: code for code, (name, _) in _TYPES.items()}


def is_safetensors(head: bytes, nbytes: int) -> bool:
    """Return whether a file of `nbytes` that begins with `head`, 9 bytes, looks like one."""
    length = int.from_bytes(head[:8], "little")
    return len(head) >= 9 and 2 <= length <= min(_MAX_HEADER, nbytes - 8) and head[8:9] == b"{"


class SafetensorsEntries(Entries):
    """The entries of a safetensors file.

    Raises EnforceNotMet, also a ValueError: it is damaged. OSError.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO = open(path, "rb", buffering=0)  # noqa: SIM115  closed by close()
        super().__init__()

    def close(self) -> None:
        """Close the file. Entries can no longer be read."""
        self._file.close()

    def _read(self) -> list[Entry]:
        size = os.fstat(self._file.fileno()).st_size
        head = self._file.read(9)
        if not is_safetensors(head, size):
            raise self._damaged("it does not begin with the length of a header")
        start = 8 + int.from_bytes(head[:8], "little")
        try:
            header = json.loads(head[8:] + self._file.read(start - 9))
            texts = header.pop("__metadata__", {})
            found = [self._entry(name, one, start, size) for name, one in header.items()]
        except (
            *(AttributeError, KeyError, TypeError, ValueError),
            *(OverflowError, RecursionError),  # of infinite sizes, of lists in lists
        ) as cause:
            raise self._damaged(f"the header cannot be read: {cause}") from cause
        return with_metadata(found, texts)

    def _entry(self, name: str, described: dict[str, Any], start: int, size: int) -> Entry:
        if described["dtype"] not in _TYPES:
            raise EnforceTypeError(f"{name!r} has elements of the unknown {described['dtype']!r}")
        dtype, itemsize = _TYPES[described["dtype"]]
        sizes = [int(n) for n in described["shape"]]
        begin, end = (int(n) for n in described["data_offsets"])
        nbytes = end - begin
        if (
            any(n < 0 for n in sizes)
            or not 0 <= begin <= end <= size - start
            or math.prod(sizes) * itemsize != nbytes
        ):
            raise EnforceValueError(f"{name!r} of sizes {sizes} is not at bytes {begin} to {end}")
        subject = f"File {self._path!r}"
        return Entry(
            name,
            dtype,
            sizes,
            nbytes,
            lambda: read_range(self._file, start + begin, nbytes, subject),
        )

    def _damaged(self, what: str) -> EnforceValueError:
        return EnforceValueError(
            f"File {self._path!r} is not a safetensors file, or damaged: {what}.", _CALLER
        )


def write_safetensors(file: BinaryIO, entries: Sequence[Entry], streams: Iterable[Entry]) -> None:
    """Write entries to an open file; `streams` yields them with their values.

    Raises EnforceNotMet, also a TypeError: the format has no such elements. OSError.
    """
    tensors = [entry for entry in entries if entry.message is None]
    for entry in tensors:
        if entry.dtype not in _CODES:
            raise EnforceTypeError(
                f"Safetensors files have no elements of {entry.dtype}, as {entry.name!r} has.",
                _CALLER,
            )
    itemsizes = {entry.name: _TYPES[_CODES[entry.dtype]][1] for entry in tensors}
    header: dict[str, Any] = {"__metadata__": {"format": "pt", **metadata_of(entries)}}
    places: dict[str, int] = {}
    at = 0
    for entry in sorted(tensors, key=lambda entry: -itemsizes[entry.name]):
        header[entry.name] = {
            "dtype": _CODES[entry.dtype],
            "shape": list(entry.sizes),
            "data_offsets": [at, at + entry.nbytes],
        }
        places[entry.name] = at
        at += entry.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MAX_HEADER:
        raise EnforceValueError(
            f"The header would have {len(text)} bytes, and safetensors files have at most "
            f"{_MAX_HEADER}.",
            _CALLER,
        )
    file.write(len(text).to_bytes(8, "little") + text)
    start = 8 + len(text)
    # In the order of the source, which is then read from its beginning to its end.
    for entry in streams:
        if entry.name in places:
            file.seek(start + places[entry.name])
            for chunk in entry.chunks():
                file.write(chunk)
