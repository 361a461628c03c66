# SPDX-License-Identifier: Apache-2.0
"""The doors through which others give the bridge structures: each takes bytes and must stay whole.

A door makes a structure of the bytes and gives it to the bridge, which takes it or refuses it by
the errors that are documented. Any other error, and a crash, is a fault. `fuzz_door.py` draws the
bytes guided by coverage, `test_doors.py` by chance from the same first inputs.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import bridge
from bridge import at, c10, caffe2, tf
from bridge.caffe2 import core, workspace
from bridge.pickling import _buffer, _items, _sized
from bridge.shell.errors import CommandError
from bridge.shell.main import main
from tests.helpers import arrow_producer as arrow
from tests.helpers.dlpack_producer import Producer, TensorSpec

REFUSALS = (
    BufferError,
    TypeError,
    ValueError,
    MemoryError,
    c10.EnforceNotMet,
    DeprecationWarning,  # NumPy's, of old names of types, where warnings are errors
)
_GOLDEN = Path(__file__).parents[1] / "golden"
# What the structures describe. Nothing is read through a pointer that another part contradicts:
# the sizes that a producer gives are believed.
_MEMORY = np.zeros(1 << 12)


class _Words:
    """Takes bytes apart into numbers; zeros follow the last of them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1] if self.at <= len(self.data) else 0

    def size(self) -> int:
        """A number that is mostly small and sometimes extreme."""
        kind, low = self.byte(), self.byte()
        if kind < 200:
            return low % 7
        wide = (low - 128) << (kind % 56)
        return (wide, 2**63 - 1 - low, -(2**63) + low, low - 4)[kind % 4]

    def sizes(self) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.byte() % 6))

    def text(self, words: tuple[str, ...]) -> str:
        found = words[self.byte() % (len(words) + 1) - 1] if self.byte() < 230 else ""
        return found or bytes(self.byte() for _ in range(4)).decode("latin-1")


_looked = itertools.count()


def _look(x: Any) -> None:
    """Ask a tensor what needs no element of it."""
    for wrapper in (x, caffe2.Tensor(x)):
        wrapper.sizes(), wrapper.strides(), wrapper.dtype(), wrapper.device(), wrapper.numel()
    if next(_looked) % 500 == 0:  # it looks through all objects of the process
        bridge.explain(x).to_dict()


def capsule(data: bytes) -> None:
    words = _Words(data)
    shape = words.sizes()
    spec = TensorSpec(
        address=_MEMORY.ctypes.data if words.byte() < 240 else None,
        shape=shape if words.byte() < 240 else None,
        strides=None if words.byte() < 128 else tuple(words.size() for _ in shape),
        code=words.byte() % 20,
        bits=(8, 16, 32, 64, 128, words.byte())[words.byte() % 6],
        lanes=1 if words.byte() < 230 else words.byte(),
        byte_offset=0 if words.byte() < 200 else words.byte() * 8,
        ndim=None if words.byte() < 230 else words.size() % 2**31,
        device=(1, 0) if words.byte() < 220 else (words.byte() % 20, words.byte() % 3),
        flags=words.byte() % 16,
        version=(1, 3) if words.byte() < 230 else (words.byte(), words.byte()),
        owner=_MEMORY,
    )
    if spec.ndim is not None and not 0 <= spec.ndim <= len(shape):
        spec = spec.but(ndim=-1 if spec.ndim % 2 else 2**31 - 1)
    x = bridge.from_dlpack(Producer(spec).__dlpack__(max_version=(1, 3)))
    _look(x)


def array_interface(data: bytes) -> None:
    words = _Words(data)

    shape = words.sizes() if words.byte() < 240 else words.size()
    typestr = words.text(("<f4", "<i8", "|u1", ">f4", "|b1", "<c8", "|V2", "<M8[s]"))
    strides = None if words.byte() < 128 else words.sizes()
    # these are copied, and so read
    if typestr == ">f4" or (strides is not None and any(stride % 16 for stride in strides)):
        strides, shape = None, shape[:2] if isinstance(shape, tuple) else shape
        shape = tuple(size % 8 for size in shape) if isinstance(shape, tuple) else shape

    class Described:
        __array_interface__ = {  # noqa: RUF012  read only
            "shape": shape,
            "typestr": typestr,
            "data": (_MEMORY.ctypes.data if words.byte() < 240 else 0, words.byte() < 40),
            "strides": strides,
            "version": 3 if words.byte() < 240 else words.size(),
        }
        kept = _MEMORY

    _look(bridge.from_dlpack(Described()))


def buffer(data: bytes) -> None:
    words = _Words(data)
    view = memoryview(bytearray(data[words.byte() % 8 :]))
    with contextlib.suppress(TypeError, ValueError, ZeroDivisionError):
        view = view.cast(words.text(("f", "d", "b", "?", "c", "q", "e", "P", "N")))
    if words.byte() % 2:
        view = view[:: words.byte() % 5 - 2 or 1]
    x = bridge.from_dlpack(view)
    _look(x)
    x.tolist()


def arrow_array(data: bytes) -> None:
    words = _Words(data)
    formats = ("f", "g", "i", "l", "C", "b", "u", "+l", "+w:3", "+w:-1", "+s", "n", "tdD")
    length = words.size()
    if words.byte() % 2:
        child = arrow.array(3 * abs(length) % 1000, None, _MEMORY)
        parts = (
            arrow.schema(words.text(formats).encode(), arrow.schema(words.text(formats).encode())),
            arrow.array(length % 300, None, children=(child,)),
        )
    else:
        parts = (
            arrow.schema(words.text(formats).encode(), flags=words.byte()),
            arrow.array(
                length if length < 0 else length % 400,
                *((None, _MEMORY)[: words.byte() % 4]),
                null_count=words.size() % 5 - 1,
                offset=words.size() % 30 - (words.byte() > 240),
            ),
        )
    _ALIVE[:] = [arrow.Producer(*parts)]
    _look(bridge.from_dlpack(_ALIVE[0]))


_ALIVE: list[Any] = []  # structures of ctypes, until the next are made


class _LittleMemory(c10.Allocator):
    """Refuses what the sizes in a few bytes may ask for: gigabytes, which take seconds to fill."""

    most = 1 << 16

    def raw_allocate(self, nbytes: int) -> int:
        if nbytes > self.most:
            raise MemoryError(f"{nbytes} bytes")
        return super().raw_allocate(nbytes)


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    before = c10.GetAllocator("cpu")
    c10.SetAllocator("cpu", _LITTLE)
    try:
        yield
    finally:
        c10.SetAllocator("cpu", before)


_LITTLE = _LittleMemory()


# strings are not in the allocator's memory
@mock.patch("bridge.tf.read_tensor_proto.MAX_NBYTES", _LittleMemory.most)
def tensor_proto(data: bytes) -> None:
    x = tf.from_tensor_proto(data)
    if math.prod(max(size, 1) for size in x.sizes()) < _LittleMemory.most:
        x.tolist()


@_little_memory()
def net(data: bytes) -> None:
    """Create a net's operators; nothing is run."""
    workspace.ResetWorkspace()
    for name in ("x", "w", "b"):
        workspace.FeedBlob(name, _MEMORY[:3])
    workspace.CreateNet(data, overwrite=True)


@_little_memory()
def minidb(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.minidb"
        path.write_bytes(data)
        caffe2.load_checkpoint(str(path))


def pickled(data: bytes) -> None:
    """The functions that a pickle calls, with parts that do not fit; a pickle may call anything."""
    words = _Words(data)
    sizes, dtype = (
        words.sizes(),
        words.text(("float32", "int64", "string", "bool", "float6_e2m3fn")),
    )
    cls = (at.Tensor, caffe2.Tensor)[words.byte() % 2]
    make = words.byte() % 3
    if make == 0:
        _buffer(cls, data[: words.byte()], sizes, c10.TypeMeta.Make(dtype))
    elif make == 1:
        items = [bytes([words.byte()]) for _ in range(words.byte() % 9)]
        _items(cls, sizes, c10.TypeMeta.Make(dtype), items)
    else:
        _sized(cls, sizes, c10.TypeMeta.Make(dtype), words.text(("cpu", "cuda:0", "meta")))


_WORDS = (
    "caffe2",
    "inspect",
    "draw",
    "convert",
    "doctor",
    "--json",
    "--help",
    "-o",
    "--input",
    "x=1,3",
    "--init-net",
    "--debug",
    "nowhere.pb",
    "out.svg",
    "FILE",
)


def shell(data: bytes) -> None:
    """Arguments of the command line, with a damaged file; never a traceback."""
    words = _Words(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / words.text(("x.minidb", "x.pb", "x.pbtxt", "x.npz"))[:20].replace(
            "/", ""
        ).replace("\0", "")
        if path != Path(folder):
            path.write_bytes(data[8:])
        given = ["caffe2", words.text(("inspect", "draw", "convert"))]
        given += [words.text(_WORDS) for _ in range(words.byte() % 5)]
        there = [str(path) if word == "FILE" else word for word in [*given, "FILE"]]
        there = [str(Path(folder) / word) if word == "out.svg" else word for word in there]
        there += ["--debug"] * (words.byte() % 2)  # which lets errors through
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status = main(there)
            except SystemExit as error:
                status = int(error.code or 0)
            except (CommandError, OSError):
                assert "--debug" in there
                status = 1
        assert status in (0, 1, 2), status
        assert "--debug" in there or "Traceback" not in said.getvalue(), said.getvalue()


def _random_like(n: int) -> list[bytes]:
    """Inputs of all kinds of bytes, for doors whose bytes are numbers."""
    steps = (1, 3, 7, 31, 64, 97, 128, 201)
    return [bytes((i * step + n * 13) % 256 for i in range(48)) for step in steps]


def _protos() -> list[bytes]:
    values: list[Any] = [
        np.arange(6.0).reshape(2, 3),
        np.arange(3, dtype=np.int8),
        np.float16([1, 2]),
        ["ab", "c"],
        [True],
        np.complex64([1j]),
    ]
    varints = b"\x08\x03\x12\x04\x12\x02\x08\x03\x3a\x03\x01\x02\x03"
    floats = b"\x08\x01\x12\x04\x12\x02\x08\x02\x2a\x08" + struct.pack("<2f", 1, 2)
    return [tf.make_tensor_proto(bridge.asarray(value)) for value in values] + [varints, floats]


def _nets() -> list[bytes]:
    first, second = core.Net("first"), core.Net("second")
    first.Relu("x", "y")
    first.FC(["y", "w", "b"], "z")
    second.ConstantFill([], "f", shape=[2, 3], value=1.0)
    second.Concat(["f", "f"], ["c", "d"], axis=0)
    return [one.Proto().SerializeToString() for one in (first, second)]


DOORS: dict[str, tuple[Callable[[bytes], None], Callable[[], list[bytes]]]] = {
    "capsule": (capsule, lambda: _random_like(0)),
    "array_interface": (array_interface, lambda: _random_like(1)),
    "buffer": (buffer, lambda: _random_like(2)),
    "arrow_array": (arrow_array, lambda: _random_like(3)),
    "tensor_proto": (tensor_proto, _protos),
    "net": (net, _nets),
    "minidb": (minidb, lambda: [(_GOLDEN / "checkpoint.minidb").read_bytes()]),
    "pickled": (pickled, lambda: _random_like(4)),
    "shell": (shell, lambda: [*_random_like(5), *(bytes(8) + one for one in _nets())]),
}


def enter(name: str, data: bytes) -> bool:
    """Pass bytes to a door; return whether it took them. Raises what is no documented refusal."""
    function, _ = DOORS[name]
    try:
        function(data)
    except REFUSALS:
        return False
    return True
