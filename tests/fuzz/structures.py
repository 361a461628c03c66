# SPDX-License-Identifier: Apache-2.0
"""Doors of the exchange: structures of DLPack, NumPy and the buffer protocol.

What is taken is compared with what NumPy finds at the same place.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
from typing import Any
from unittest import mock

import numpy as np

import bridge
from bridge import at, caffe2
from bridge.c10 import EnforceNotMet
from bridge.c10.raw_parts import byte_view
from tests.fuzz.memory import little_memory
from tests.fuzz.words import MEMORY, MOST_READ, NBYTES, Words, elements_at, refused
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import ExchangeTable, TableError, compact_strides
from tests.helpers.dlpack_producer import (
    ManagedTensor,
    OldProducer,
    Producer,
    StreamProducer,
    TensorSpec,
)
from tests.helpers.dlpack_table import Table, producer_type

_BASE = MEMORY.ctypes.data
_looked = itertools.count()
COPY = (None, None, True, False)


def look(x: Any) -> None:
    """Ask a tensor what needs no element of it."""
    wrappers = [x]
    with contextlib.suppress(EnforceNotMet):  # it takes row-major elements only
        wrappers.append(caffe2.Tensor(x))
    for wrapper in wrappers:
        wrapper.sizes(), wrapper.strides(), wrapper.dtype(), wrapper.device(), wrapper.numel()
    if next(_looked) % 20_000 == 0:  # it looks through all objects of the process
        bridge.explain(x).to_dict()


def content(x: Any) -> bytes:
    """Return the elements of a tensor in row-major order."""
    return bytes(memoryview(byte_view(x.unsafeGetTensorImpl())))


def _spec(words: Words) -> TensorSpec:
    shape = words.sizes()
    spec = TensorSpec(
        address=None if words.rarely() else _BASE + (words.byte() if words.rarely(60) else 0),
        shape=None if words.rarely() else shape,
        strides=tuple(words.size() for _ in shape) if words.byte() % 2 else None,
        code=words.byte() % 20,
        bits=words.choice((8, 16, 32, 64, 128, 4, 6, words.byte())),
        lanes=words.byte() if words.rarely() else 1,
        byte_offset=(words.byte(), words.size() % 2**64)[words.byte() % 2]
        if words.rarely(56)
        else 0,
        ndim=words.size() % 2**31 if words.rarely() else None,
        device=(words.byte() % 20, words.byte() % 3) if words.rarely(30) else (abi.CPU, 0),
        flags=words.byte() % 16,
        version=(words.byte(), words.byte()) if words.rarely() else (1, 3),
        owner=MEMORY,
    )
    if spec.ndim is not None and not 0 <= spec.ndim <= len(shape):
        spec = spec.but(ndim=-1 if spec.ndim % 2 else 2**31 - 1)
    if _expected(spec, False) is None:  # then no element may be read, as those are that are
        spec = spec.but(  # misaligned, or packed: legacy capsules have no flags
            address=spec.address and _BASE,
            byte_offset=spec.byte_offset & ~15,
            bits=8 if 0 < spec.bits < 8 else spec.bits,
        )
    return spec


def _copy(words: Words, spec: TensorSpec) -> bool | None:
    copy = words.choice(COPY)
    return copy if _expected(spec, True) is not None else copy and None


def _expected(spec: TensorSpec, padded: bool) -> bytes | None:
    """Return the elements that a DLTensor of host memory describes; None: not to be compared."""
    if spec.device[0] != abi.CPU or not spec.address or spec.lanes != 1:
        return None
    shape = (spec.shape or ())[: spec.ndim]
    if any(size < 0 for size in shape):
        return None
    offset = spec.address - _BASE + spec.byte_offset
    if offset >= 2**62:
        return None
    if spec.bits == 0 or (spec.bits > 8 and spec.bits % 8):
        return None
    if spec.bits < 8 and not padded:
        numel = math.prod(shape)
        packed = elements_at(offset, (-(-numel * spec.bits // 8),), None, 1)
        if packed is None:
            return None
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        bits = bits[: numel * spec.bits].reshape(numel, spec.bits)
        missing = np.zeros((numel, 8 - spec.bits), np.uint8)
        if spec.code == abi.INT:  # the sign fills the byte
            missing += bits[:, -1:]
        return np.packbits(np.hstack([bits, missing]), bitorder="little").tobytes()
    itemsize = (spec.bits + 7) // 8
    strides = compact_strides(shape) if spec.strides is None else spec.strides[: len(shape)]
    return elements_at(offset, shape, [step * itemsize for step in strides], itemsize)


def _compare(x: Any, expected: bytes | None) -> None:
    """Compare a tensor's elements, and those of what it gives others."""
    look(x)
    if expected is None:
        return
    assert content(x) == expected, (content(x), expected)
    with contextlib.suppress(BufferError):
        assert content(bridge.from_dlpack(x.__dlpack__(max_version=(1, 3)))) == expected
    with contextlib.suppress(BufferError, TypeError, RuntimeError, ValueError):
        if x.numpy().dtype.kind in "biufc":
            assert x.numpy().tobytes() == expected


def _all_deleted(made: list[ManagedTensor]) -> None:
    """Check that each structure was deleted once, whether it was taken or refused."""
    assert all(managed.deleted == 1 for managed in made), [managed.deleted for managed in made]


def capsule(data: bytes) -> bool:
    """DLPack's structures, as capsules and from `__dlpack__` of each signature."""
    words = Words(data)
    spec = _spec(words)
    copy = _copy(words, spec)
    device = "cpu" if words.rarely() and spec.device[0] == abi.CPU else None
    kind = words.choice((None, None, None, Producer, OldProducer, StreamProducer))
    name = words.choice((b"", b"used_dltensor", b"\xff")) if words.rarely() else None
    producer = (kind or Producer)(
        spec,
        versioned=words.choice((None, True, False)),
        device=(words.byte() % 20, words.byte() % 3) if words.rarely() else None,
        capsule_name=name,
    )

    def take() -> None:
        given = producer if kind else producer.__dlpack__(max_version=(1, 3))
        x = bridge.from_dlpack(given, copy=copy, device=device)
        padded = producer.made[-1].versioned and bool(spec.flags & abi.SUBBYTE_PADDED)
        _compare(x, _expected(spec, padded))
        if kind is None:
            assert refused(lambda: look(bridge.from_dlpack(given))), "taken twice"

    is_refused = refused(take)
    if name is None:
        _all_deleted(producer.made)
    else:  # what such a capsule holds is not known to be a structure of DLPack
        assert is_refused, name
        for managed in producer.made:
            assert not managed.deleted, name
            managed.count_delete()
    return not is_refused


# One table and one class, as consumers may keep what they find on a class.
_TABLE, _OLDER = Table(), Table()
_FUNCTIONS = {name: getattr(_TABLE.struct, name) for name, _ in abi.DLPackExchangeAPI._fields_[2:]}
_OF_TABLE = producer_type(_TABLE)
_FAILS = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value


def table(data: bytes) -> bool:
    """A class with a C exchange table, whose functions fail, lie or are missing."""
    words = Words(data)
    spec = _spec(words)
    copy = _copy(words, spec)
    answer = words.choice(("made", "made", "made", "nothing", "status", "exception"))

    def from_py(producer: Producer) -> tuple[int | None, int]:
        if answer != "made":
            return None, -(answer == "status")
        managed = ManagedTensor(producer.spec, versioned=True)
        producer.made.append(managed)
        return managed.address, 0

    for name, address in _FUNCTIONS.items():
        setattr(_TABLE.struct, name, None if words.rarely(8) else address)
        setattr(_OLDER.struct, name, None if words.rarely(8) else address)
    if answer == "exception":
        _TABLE.struct.managed_tensor_from_py_object_no_sync = _FAILS
    _TABLE.from_py = _OLDER.from_py = from_py
    _TABLE.calls.clear(), _OLDER.calls.clear()
    _TABLE.work_stream, _TABLE.work_stream_status = words.byte() % 3, -(words.byte() % 2)
    _TABLE.struct.version.major = words.byte() % 4 if words.rarely(40) else 1
    _TABLE.struct.prev_api = None if words.byte() % 2 else ctypes.addressof(_OLDER.struct)
    _OLDER.struct.version.major = words.byte() % 4
    _OLDER.struct.prev_api = ctypes.addressof(_TABLE.struct) if words.byte() % 2 else None
    producer = _OF_TABLE(spec)

    def take() -> None:
        x = bridge.from_dlpack(producer, copy=copy)
        padded = producer.made[-1].versioned and bool(spec.flags & abi.SUBBYTE_PADDED)
        _compare(x, _expected(spec, padded))

    is_refused = refused(take)
    _all_deleted(producer.made)
    return not is_refused


_OURS = (
    (at.Tensor, ExchangeTable(at.Tensor)),
    (caffe2.Tensor, ExchangeTable(caffe2.Tensor)),
)


@little_memory()
def exchange_table(data: bytes) -> bool:
    """The functions of our own C exchange table, called with anything."""
    words = Words(data)
    wrap, ours = words.choice(_OURS)
    function = words.choice((_allocate, _give, _take, _borrow, _work_stream))
    try:
        return function(words, wrap, ours)
    except TableError:
        return False


def _allocate(words: Words, _: Any, ours: ExchangeTable) -> bool:
    shape = words.sizes()
    dtype = (words.byte() % 20, words.choice((8, 16, 32, 64, 128, words.byte())), 1)
    device = (words.byte() % 20, words.size() % 2**31) if words.rarely(30) else (abi.CPU, 0)
    taken = ours.allocate(shape, dtype, device)
    assert (taken.shape, taken.dtype) == (shape, dtype)
    assert taken.strides in (None, compact_strides([max(size, 1) for size in shape]))
    taken.release()
    return True


def _give(words: Words, wrap: Any, ours: ExchangeTable) -> bool:
    spec = _spec(words)
    managed = ManagedTensor(spec, versioned=True)
    expected = _expected(spec, bool(spec.flags & abi.SUBBYTE_PADDED))

    def give() -> None:
        x = ours.give(managed.address)
        assert type(x) is wrap
        _compare(x if wrap is at.Tensor else at.Tensor(x), expected)

    is_refused = refused(give)
    _all_deleted([managed])
    return not is_refused


def _take(words: Words, wrap: Any, ours: ExchangeTable) -> bool:
    x = _tensor(words, wrap)
    taken = ours.take(x)
    assert taken.shape == tuple(x.sizes())
    assert not x.numel() or taken.data() == content(x)
    taken.release()
    return True


def _borrow(words: Words, wrap: Any, ours: ExchangeTable) -> bool:
    x = _tensor(words, wrap)
    borrowed = ours.borrow(x)
    assert borrowed.shape == tuple(x.sizes())
    assert not x.numel() or borrowed.data() == content(x)
    return True


def _work_stream(words: Words, _: Any, ours: ExchangeTable) -> bool:
    ours.work_stream((words.byte() % 20, words.size() % 2**31))
    return True


def _tensor(words: Words, wrap: Any) -> Any:
    sizes = [abs(size) % 4 for size in words.sizes()]
    x = bridge.from_dlpack(MEMORY[: math.prod(sizes)].reshape(sizes))
    if len(sizes) > 1 and words.byte() % 2:
        x = x.transpose(0, 1)
    return wrap(x)


_TYPESTRS = (
    *("<f4", "<i8", "|u1", ">f4", "|b1", "<c8", "|V2", "<M8[s]", "<f2", ">i2", "|S3", "<U1"),
    *("<f16", "<u4"),
)


def _interface(words: Words, on_host: bool) -> tuple[dict[str, Any], bool]:
    """Return an array interface, and whether its elements may be read."""
    shape: Any = words.sizes()
    typestr = words.text(_TYPESTRS).replace("O", "f")  # objects are believed to be some
    strides: Any = None
    if words.byte() % 2:
        step = words.choice((1, 2, 4, 8, 16))
        strides = tuple(step * words.size() for _ in shape)
    offset = words.byte() if words.rarely(40) else 0
    try:
        inside = elements_at(offset, shape, strides, np.dtype(typestr).itemsize) is not None
    except (TypeError, ValueError, SyntaxError, KeyError):
        inside = False
    if not inside and on_host:
        # what is in another order, misaligned or text is copied, and so read
        typestr, strides, offset = "<f8", None, 0
    if words.rarely(30):
        shape, inside = words.choice((words.size(), None, [1, 2], ("a",), (1.5,))), False
    if words.rarely(8):
        strides, inside = words.choice((words.size(), [8], ("a",))), False
    interface: dict[str, Any] = {
        "shape": shape,
        "typestr": typestr,
        "strides": strides,
        "data": (_BASE + offset, words.rarely(40)),
        "version": words.size() if words.rarely() else 3,
    }
    if words.rarely(30):
        junk = ((0, False), (None, False), (_BASE,), None, 7, b"12345678", memoryview(b"123456789"))
        interface["data"] = words.choice(junk)
        interface["offset"] = words.choice((0, 1, words.size(), "a"))
        inside = False
    if words.rarely(8):
        interface[words.choice(("mask", "descr", "stream"))] = words.choice(
            (None, [("a", "<f4")], [("", typestr)], 1, [])
        )
    for key in tuple(interface):
        if words.rarely(2):
            del interface[key]
            inside = False
    return interface, inside


class _Described:
    """Has one description of memory, of the kind that a door gives it."""

    kept = MEMORY


def array_interface(data: bytes) -> bool:
    """What `__array_interface__` describes, held against what NumPy makes of it."""
    words = Words(data)
    given = _Described()
    interface, inside = _interface(words, True)
    given.__array_interface__ = interface  # type: ignore[attr-defined]
    copy = words.choice(COPY) if inside else words.choice((None, False))

    def take() -> None:
        x = bridge.from_dlpack(given, copy=copy)
        look(x)
        if x.numel():  # else NumPy may write elements all the same, where no data is named
            _compare_with(x, np.asarray(given))

    return not refused(take)


def _compare_with(x: Any, there: Any) -> None:
    """Compare a tensor with NumPy's array of the same object."""
    assert tuple(x.sizes()) == there.shape
    if there.size <= MOST_READ and _in_memory(there) and there.dtype.kind in "biufc":
        assert content(x) == there.astype(there.dtype.newbyteorder("=")).tobytes()


def _in_memory(there: Any) -> bool:
    if not there.size:
        return True
    low, high = np.lib.array_utils.byte_bounds(there)
    return bool(_BASE <= low <= high <= _BASE + NBYTES)


class _ArrayStruct(ctypes.Structure):
    """NumPy's PyArrayInterface."""

    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.py_object),
    ]


def array_struct(data: bytes) -> bool:
    """What `__array_struct__` describes, which NumPy reads."""
    words = Words(data)
    shape = tuple(size % 5 for size in words.sizes())
    steps = [words.choice((0, 1, 2, 4, 8, 16, -8)) for _ in shape]
    itemsize = words.choice((1, 2, 4, 8, 16))
    offset = 4096 + words.byte() % 32
    struct = _ArrayStruct(
        two=words.byte() if words.rarely(8) else 2,
        nd=len(shape),
        typekind=words.choice(b"fiubcVSUmM\xff").to_bytes(1, "little"),
        itemsize=itemsize,
        flags=words.byte() | words.byte() << 8,
    )
    struct.flags &= ~0x800  # no description of the elements
    extents, strides = (ctypes.c_int64 * 6)(*shape), (ctypes.c_int64 * 6)(*steps)
    struct.shape = ctypes.addressof(extents)
    struct.strides = ctypes.addressof(strides)
    struct.data = _BASE + offset
    given = _Described()
    given.parts = struct, extents, strides  # type: ignore[attr-defined]
    given.__array_struct__ = abi.capsule_new(  # type: ignore[attr-defined]
        ctypes.addressof(struct), None, None
    )
    copy = words.choice(COPY)

    def take() -> None:
        x = bridge.from_dlpack(given, copy=copy)
        look(x)
        _compare_with(x, np.asarray(given))

    return not refused(take)


def cuda_interface(data: bytes) -> bool:
    """What `__cuda_array_interface__` describes, where torch finds device 0 for each address."""
    words = Words(data)
    given = _Described()
    interface, _ = _interface(words, False)
    interface.setdefault("stream", words.choice((None, 1, 2, 0, -1, "a", words.size())))
    given.__cuda_array_interface__ = interface  # type: ignore[attr-defined]

    def take() -> None:
        x = bridge.from_dlpack(given)
        look(x)
        assert tuple(x.sizes()) == interface["shape"]
        assert x.readonly == bool(interface["data"][1])
        if x.numel():
            assert x.data_ptr() == interface["data"][0]
        if interface.get("strides") is not None:
            itemsize = x.dtype.itemsize
            assert [step * itemsize for step in x.strides()] == list(interface["strides"])

    where = "bridge.exchange.array_doors."
    with (
        mock.patch(where + "_device_of", return_value=0),
        mock.patch(where + "wait_for_producer"),
    ):
        return not refused(take)
