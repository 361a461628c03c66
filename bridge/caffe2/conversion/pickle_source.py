# SPDX-License-Identifier: Apache-2.0
"""Detectron's weights, a pickled dict of NumPy arrays, as entries; no code of the file runs.

The file is read twice. First its opcodes are copied but for long strings, the arrays' bytes, which
become references to their place in the file; the result is small, and is unpickled with classes
of this module in the place of NumPy's and all others refused. The bytes are read when they are
wanted, so that no more memory is used than for the largest array.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import pickletools
from collections import OrderedDict
from collections.abc import Iterator

from bridge.annotation import Any, BinaryIO
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrap_error
from bridge.caffe2.conversion.entries import Entries, Entry, read_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.conversion.entries import Buffer

_CALLER = "convert"
_LONG = 256  # bytes of a string that is left in the file
# Opcodes with bytes or text of a length before them: the bytes of the opcode and the length.
_STRINGS = {
    "BINSTRING": 5,
    "BINBYTES": 5,
    "BINBYTES8": 9,
    "BYTEARRAY8": 9,
    "BINUNICODE": 5,
    "BINUNICODE8": 9,
}
_PUTS = ("PUT", "BINPUT", "LONG_BINPUT")  # which give the last object a number


class _Span:
    """Bytes at a place in the file; `text`: they are UTF-8, and their characters are the bytes."""

    def __init__(self, begin: int, nbytes: int, text: bool) -> None:
        self.begin = begin
        self.nbytes = nbytes
        self.text = text


class _Dtype:
    """The stand-in for numpy.dtype."""

    def __init__(self, code: Any = "", align: Any = False, copy: Any = False) -> None:
        self.code = code.decode("latin1") if isinstance(code, bytes) else str(code)
        self.order = "<"

    def __setstate__(self, state: Any) -> None:
        order = state[1]
        self.order = order.decode("latin1") if isinstance(order, bytes) else str(order)


class _Array:
    """The stand-in for numpy.ndarray."""

    sizes: tuple[int, ...] = ()
    dtype: _Dtype
    by_column = False
    data: Any = b""

    def __setstate__(self, state: Any) -> None:
        _, sizes, self.dtype, by_column, self.data = state
        self.sizes = tuple(int(n) for n in sizes)
        self.by_column = bool(by_column)


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _scalar(dtype: _Dtype, data: Any = b"") -> _Array:
    array = _Array()
    array.dtype, array.data = dtype, data
    return array


def _frombuffer(data: Any, dtype: _Dtype, sizes: Any, order: Any) -> _Array:
    array = _Array()
    array.__setstate__((1, sizes, dtype, order == "F", data))
    return array


def _encode(text: Any, encoding: Any = "latin1") -> Any:
    """Return the bytes that Python 3 pickles as text in old protocols."""
    return text if isinstance(text, _Span) else str(text).encode("latin1")


_NAMES: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("_codecs", "encode"): _encode,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    **{
        (f"numpy.{core}.{module}", name): function
        for core in ("core", "_core")
        for module, name, function in (
            ("multiarray", "_reconstruct", _reconstruct),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _frombuffer),
        )
    },
}


class _Unpickler(pickle.Unpickler):
    """An unpickler that calls only the functions in `_NAMES`."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name. Raises EnforceNotMet, also a TypeError: it is another."""
        if (module, name) not in _NAMES:
            raise EnforceTypeError(
                f"the file would import {module}.{name}; pickles are read for NumPy's arrays only",
                _CALLER,
            )
        return _NAMES[module, name]

    def persistent_load(self, pid: Any) -> _Span:
        """Return the reference to the bytes of a string that was left in the file."""
        return _Span(*pid)


def _without_strings(file: BinaryIO) -> bytes:
    """Return the opcodes of a pickle with references in the place of long strings."""
    out = io.BytesIO()
    last: tuple[str, int] | None = None
    for opcode, argument, position in pickletools.genops(file):
        assert position is not None
        # The unpickler makes room for all numbers up to it, and picklers count.
        if opcode.name in _PUTS and (argument or 0) > position:
            raise EnforceValueError(f"number {argument} is not that of an object before", _CALLER)
        if last is not None:
            _copy(file, out, *last, position)
        last = opcode.name, position
    if last is not None:
        _copy(file, out, *last, last[1] + 1)  # STOP
    return out.getvalue()


def _copy(file: BinaryIO, out: io.BytesIO, name: str, begin: int, end: int) -> None:
    """Copy an opcode from [begin, end) of the file, or write a reference to its string."""
    here = file.tell()
    head = _STRINGS.get(name)
    if name == "PERSID" or name == "BINPERSID":
        raise EnforceTypeError("the file refers to objects outside of it", _CALLER)
    if head is not None and end - begin - head > _LONG:
        text = "UNICODE" in name
        reference = pickle.dumps((begin + head, end - begin - head, text), protocol=2)
        # Without the opcode of the protocol at its beginning, and STOP at its end.
        out.write(reference[2:-1] + pickle.BINPERSID)
    elif name != "FRAME":  # whose length would be wrong
        file.seek(begin)
        out.write(file.read(end - begin))
        file.seek(here)


class PickleEntries(Entries):
    """The arrays in a pickled dict, or in its item ``"blobs"``, as entries.

    Raises EnforceNotMet: it is damaged (also a ValueError), is not a dict of arrays, or would
    import anything else (also a TypeError). OSError.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115  closed by close()
        try:
            super().__init__()
        except OSError:
            raise
        except Exception as cause:
            raise wrap_error(f"File {path!r} cannot be read", _CALLER, cause) from cause

    def close(self) -> None:
        """Close the file. Entries can no longer be read."""
        self._file.close()

    def _read(self) -> list[Entry]:
        opcodes = _without_strings(self._file)
        # Python 2 has one type for text and bytes.
        found = _Unpickler(io.BytesIO(opcodes), encoding="latin1").load()
        blobs = found.get("blobs", found) if isinstance(found, dict) else None
        if not isinstance(blobs, dict):
            raise EnforceTypeError("it is not a dict of arrays", _CALLER)
        size = os.fstat(self._file.fileno()).st_size
        entries = [
            self._entry(str(name), value, size)
            for name, value in blobs.items()
            if isinstance(value, _Array)
        ]
        if not entries:
            raise EnforceTypeError("it has no arrays", _CALLER)
        return entries

    def _entry(self, name: str, array: _Array, size: int) -> Entry:
        import numpy as np

        dtype = np.dtype(array.dtype.code)
        if dtype.kind not in "biufc":
            raise EnforceTypeError(f"array {name!r} has elements of {dtype}, not numbers", _CALLER)
        stored = dtype.newbyteorder(">" if array.dtype.order == ">" else "<")
        nbytes = math.prod(array.sizes) * dtype.itemsize
        data = array.data
        if isinstance(data, str):
            data = data.encode("latin1")
        found = data.nbytes if isinstance(data, _Span) else len(data)
        # The characters of a text, which are the bytes, take one or two bytes in the file.
        fits = found == nbytes or (getattr(data, "text", False) and nbytes < found <= size)
        if any(n < 0 for n in array.sizes) or not fits:
            raise EnforceValueError(
                f"array {name!r} of sizes {list(array.sizes)} has {found} bytes, not {nbytes}",
                _CALLER,
            )

        def chunks() -> Iterator[Buffer]:
            plain = stored.newbyteorder("<")
            if stored == plain and not array.by_column and not getattr(data, "text", False):
                yield from _parts(self._file, data, nbytes, f"File {self._path!r}")
                return
            whole = np.frombuffer(_bytes(self._file, data, nbytes), stored)
            if array.by_column:
                whole = whole.reshape(array.sizes, order="F")
            if whole.size:
                yield np.ascontiguousarray(whole, plain).data.cast("B")

        return Entry(name, dtype.name, array.sizes, nbytes, chunks)


def _parts(file: BinaryIO, data: Any, nbytes: int, subject: str) -> Iterator[Buffer]:
    if isinstance(data, _Span):
        yield from read_range(file, data.begin, nbytes, subject)
    else:
        yield data


def _bytes(file: BinaryIO, data: Any, nbytes: int) -> bytes:
    """Return all bytes of an array."""
    if not isinstance(data, _Span):
        return bytes(data)
    file.seek(data.begin)
    found = file.read(data.nbytes)
    found = found.decode().encode("latin1") if data.text else found
    if len(found) != nbytes:
        raise EnforceValueError(f"an array has {len(found)} bytes, not {nbytes}", _CALLER)
    return found
