# SPDX-License-Identifier: Apache-2.0
"""NumPy's .npz files, read and written as streams.

Each tensor is a member ``name.npy``. If the blobs are more than tensors, or their order is not that
of the members, the member ``caffe2.json`` says what is missing (`metadata`).
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterator

from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.conversion.entries import CHUNK_NBYTES, Entries, Entry
from bridge.caffe2.conversion.metadata import metadata_of, with_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, BinaryIO

    from bridge.caffe2.conversion.entries import Buffer

__all__ = ["NpzEntries", "write_npz"]

_CALLER = "convert"
_METADATA = "caffe2.json"
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
        except zipfile.BadZipFile as cause:
            raise wrap_error(f"File {path!r} cannot be read", _CALLER, cause) from cause
        try:
            tensors, texts = [], {}
            for name in self._zip.namelist():
                if name == _METADATA:
                    texts = json.loads(self._zip.read(name))
                elif name.endswith(".npy"):
                    tensors.append(self._entry(name))
            self.entries: list[Entry] = with_metadata(tensors, texts)
        except (ValueError, zipfile.BadZipFile, EOFError) as cause:
            self.close()
            raise wrap_error(f"File {path!r} cannot be read", _CALLER, cause) from cause
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file. Entries can no longer be read."""
        self._zip.close()

    def _entry(self, member: str) -> Entry:
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

            stream: Any  # zipfile's stubs do not have its read1
            with self._zip.open(member) as stream:
                _head(stream)
                plain = dtype.newbyteorder("<")
                if by_column and len(sizes) > 1:
                    whole = np.frombuffer(stream.read(nbytes), dtype)
                    rows = np.ascontiguousarray(whole.reshape(sizes, order="F"), plain)
                    yield rows.data.cast("B") if rows.size else b""
                    return
                left = nbytes
                while left:
                    chunk = stream.read1(min(left, CHUNK_NBYTES))  # read() would copy
                    if not chunk:
                        raise EnforceValueError(
                            f"File {self._path!r} ends {left} bytes too early.", _CALLER
                        )
                    left -= len(chunk)
                    yield (
                        chunk
                        if plain == dtype
                        else np.frombuffer(chunk, dtype).astype(plain).tobytes()
                    )

        return Entry(member.removesuffix(".npy"), dtype.name, sizes, nbytes, chunks)


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
        if len(texts) > 1:  # the order is that of the members
            archive.writestr(_METADATA, json.dumps(texts, indent=1))
