# SPDX-License-Identifier: Apache-2.0
"""NumPy's .npz files, read and written as streams.

Each tensor is a member ``name.npy``. If the blobs are more than tensors, or their order is not that
of the members, the member ``caffe2.json`` has the missing parts (see `entries`).
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator

from bridge.annotation import Any, BinaryIO
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.caffe2.conversion.entries import (
    CHUNK_NBYTES,
    Entries,
    Entry,
    metadata_of,
    with_metadata,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bridge.caffe2.conversion.entries import Buffer

_CALLER = "convert"
_METADATA = "caffe2.json"
# Of a member's own head: how long its name and the field after it are.
_LOCAL_HEAD = struct.Struct("<26xHH")
_ENCRYPTED = 1
_TYPES = frozenset(
    {
        *("bool", "complex128", "complex64", "float16", "float32", "float64", "int16", "int32"),
        *("int64", "int8", "uint16", "uint32", "uint64", "uint8"),
    }
)


class NpzEntries(Entries):
    """The entries of an .npz file.

    Raises EnforceNotMet: it is damaged (also a ValueError), or has arrays of other things than
    numbers (also a TypeError). OSError.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError:
            raise
        except Exception as cause:
            raise self._damaged(cause) from cause
        try:
            super().__init__()
        except (OSError, EnforceNotMet):
            raise
        except Exception as cause:  # of zipfile, zlib, json or NumPy's reader of heads
            raise self._damaged(cause) from cause

    def _read(self) -> list[Entry]:
        tensors, texts = [], {}
        for name in self._zip.namelist():
            if name == _METADATA:
                texts = json.loads(self._zip.read(name))
            elif name.endswith(".npy"):
                tensors.append(self._entry(name))
        return with_metadata(tensors, texts)

    def close(self) -> None:
        """Close the file. Entries can no longer be read."""
        self._zip.close()

    def _damaged(self, cause: Exception) -> EnforceValueError:
        reason = str(cause) or type(cause).__name__
        return EnforceValueError(f"File {self._path!r} is damaged: {reason}", _CALLER)

    def _entry(self, member: str) -> Entry:
        if self._zip.getinfo(member).header_offset < 0:
            raise ValueError(f"{member!r} is in front of the file")
        with self._zip.open(member) as stream:
            sizes, by_column, dtype = _head(stream)
        if dtype.name not in _TYPES:
            raise EnforceTypeError(
                f"Array {member.removesuffix('.npy')!r} has elements of {dtype}, which are not "
                "numbers.",
                _CALLER,
            )
        nbytes = math.prod(sizes) * dtype.itemsize

        def chunks() -> Iterator[Buffer]:
            import numpy as np

            plain = dtype.newbyteorder("<")
            if by_column and len(sizes) > 1:
                whole = np.frombuffer(b"".join(self._elements(member, nbytes)), dtype)
                rows = np.ascontiguousarray(whole.reshape(sizes, order="F"), plain)
                yield rows.data.cast("B") if rows.size else b""
                return
            for chunk in self._elements(member, nbytes):
                yield (
                    chunk if plain == dtype else np.frombuffer(chunk, dtype).astype(plain).tobytes()
                )

        return Entry(member.removesuffix(".npy"), dtype.name, sizes, nbytes, chunks)

    def _elements(self, member: str, nbytes: int) -> Iterator[Buffer]:
        """Yield the elements of an array in chunks, as they are in the file."""
        info = self._zip.getinfo(member)
        try:
            if info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & _ENCRYPTED:
                yield from self._mapped(info, nbytes)
                return
            with self._zip.open(member) as stream:
                _head(stream)
                while nbytes:
                    chunk = stream.read(min(nbytes, CHUNK_NBYTES))
                    if not chunk:
                        raise self._too_short(nbytes)
                    nbytes -= len(chunk)
                    yield chunk
        except (OSError, EnforceNotMet):
            raise
        except Exception as cause:  # of zipfile, zlib, mmap or NumPy's reader of heads
            raise self._damaged(cause) from cause

    def _mapped(self, info: zipfile.ZipInfo, nbytes: int) -> Iterator[Buffer]:
        """Yield the elements of a member that is not compressed, mapped into memory.

        zipfile would copy them twice. Raises EnforceNotMet, also a ValueError: the file is shorter,
        or the checksum differs.
        """
        with open(self._path, "rb") as file:
            file.seek(info.header_offset)
            head = file.read(_LOCAL_HEAD.size)
            if len(head) < _LOCAL_HEAD.size:
                raise self._too_short(nbytes)
            name_nbytes, extra_nbytes = _LOCAL_HEAD.unpack(head)
            begin = file.tell() + name_nbytes + extra_nbytes
            end = begin + info.file_size
            if end > os.fstat(file.fileno()).st_size:
                raise self._too_short(nbytes)
            file.seek(begin)
            _head(file)
            at = file.tell()
            file.seek(begin)
            checksum = zlib.crc32(file.read(at - begin))
            if end - at < nbytes:
                raise self._too_short(nbytes)
            while at < end:
                first = at - at % mmap.ALLOCATIONGRANULARITY
                stop = min(at + CHUNK_NBYTES, end)
                pages = mmap.mmap(
                    file.fileno(), stop - first, offset=first, access=mmap.ACCESS_READ
                )
                chunk = memoryview(pages)[at - first :]
                checksum = zlib.crc32(chunk, checksum)
                at = stop
                if at == end and checksum != info.CRC:
                    raise EnforceValueError(
                        f"File {self._path!r} is damaged: the checksum of {info.filename!r} "
                        "differs.",
                        _CALLER,
                    )
                if nbytes:
                    yield chunk[:nbytes]
                    nbytes -= min(nbytes, len(chunk))

    def _too_short(self, nbytes: int) -> EnforceValueError:
        return EnforceValueError(f"File {self._path!r} ends {nbytes} bytes too early.", _CALLER)


def _head(stream: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Read the head of an .npy file; return the sizes, whether by columns, and the dtype."""
    from numpy.lib import format as npy

    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    sizes, by_column, dtype = read(stream)
    return tuple(int(n) for n in sizes), bool(by_column), dtype


def write_npz(file: BinaryIO, entries: Sequence[Entry], streams: Iterable[Entry]) -> None:
    """Write entries to an open file; `streams` yields them with their values.

    Raises EnforceNotMet, also a TypeError: NumPy has no such elements. OSError.
    """
    import numpy as np
    from numpy.lib import format as npy

    for entry in entries:
        if entry.message is None and entry.dtype not in _TYPES:
            raise EnforceTypeError(
                f"NumPy has no elements of {entry.dtype}, as {entry.name!r} has.", _CALLER
            )
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for entry in streams:
            if entry.message is not None:
                continue
            described: dict[str, Any] = {
                "descr": npy.dtype_to_descr(np.dtype(entry.dtype).newbyteorder("<")),
                "fortran_order": False,
                "shape": entry.sizes,
            }
            with archive.open(f"{entry.name}.npy", "w", force_zip64=True) as stream:
                npy.write_array_header_1_0(stream, described)
                for chunk in entry.chunks():
                    stream.write(chunk)
        texts = metadata_of(entries)
        if len(texts) > 1:  # in the order of the members
            archive.writestr(_METADATA, json.dumps(texts, indent=1))
