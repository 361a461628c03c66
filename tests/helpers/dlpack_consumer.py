# SPDX-License-Identifier: Apache-2.0
"""An independent DLPack consumer: reads capsules and exchange tables with its own eyes."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

from tests.helpers import dlpack_structs as abi


class Imported:
    """A DLManagedTensor[Versioned] that this consumer owns until `release`.

    `address` includes the byte offset (0 where data is NULL); `strides` are in elements, `None`
    where the producer left them out; `version` and `flags` are `None` for a legacy struct.
    """

    def __init__(self, pointer: int, *, versioned: bool) -> None:
        self.pointer = pointer
        self._struct: abi.DLManagedTensor | abi.DLManagedTensorVersioned
        if versioned:
            struct = abi.DLManagedTensorVersioned.from_address(pointer)
            self.version: tuple[int, int] | None = (struct.version.major, struct.version.minor)
            self.flags: int | None = struct.flags
            self._struct = struct
        else:
            self.version = self.flags = None
            self._struct = abi.DLManagedTensor.from_address(pointer)
        self._read(self._struct.dl_tensor)
        self.released = False

    def _read(self, tensor: abi.DLTensor) -> None:
        self.ndim: int = tensor.ndim
        self.address: int = tensor.data + tensor.byte_offset if tensor.data else 0
        self.byte_offset: int = tensor.byte_offset
        self.device = (tensor.device.device_type, tensor.device.device_id)
        self.dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes)
        self.shape = self._extents(tensor.shape)
        self.strides = self._extents(tensor.strides) if tensor.strides or not self.ndim else None

    def _extents(self, pointer: int | None) -> tuple[int, ...]:
        if not self.ndim:
            return ()
        assert pointer, "a NULL array where ndim is not 0"
        return tuple((ctypes.c_int64 * self.ndim).from_address(pointer))

    @property
    def readonly(self) -> bool:
        return bool((self.flags or 0) & abi.READ_ONLY)

    @property
    def copied(self) -> bool:
        return bool((self.flags or 0) & abi.IS_COPIED)

    def data(self) -> bytes:
        """The elements in row-major order, read from CPU memory."""
        return read_elements(self.address, self.shape, self.strides, self.dtype[1] // 8)

    def surrender(self) -> int:
        """The pointer, for a function that takes ownership of it."""
        self.released = True
        return self.pointer

    def release(self) -> None:
        """Call the deleter, if there is one, for the only time."""
        assert not self.released, "released before"
        self.released = True
        if self._struct.deleter:
            abi.DELETER(self._struct.deleter)(self.pointer)


class Borrowed(Imported):
    """A DLTensor that somebody else owns; nothing to release."""

    def __init__(self, tensor: abi.DLTensor) -> None:
        self.version = self.flags = None
        self.released = True
        self._read(tensor)


def read_elements(
    address: int, shape: Sequence[int], strides: Sequence[int] | None, itemsize: int
) -> bytes:
    """Bytes of a strided tensor in row-major order; `strides` in elements, `None`: compact."""
    if strides is None:
        strides = compact_strides(shape)
    pieces = []
    for index in itertools.product(*map(range, shape)):
        offset = sum(i * stride for i, stride in zip(index, strides, strict=True))
        pieces.append(ctypes.string_at(address + offset * itemsize, itemsize))
    return b"".join(pieces)


def compact_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


def take_capsule(capsule: Any) -> Imported:
    """Take a capsule over as the protocol says: read, rename, own."""
    name = abi.capsule_name(capsule)
    versioned = name == abi.VERSIONED_NAME
    assert versioned or name == abi.LEGACY_NAME, f"a capsule named {name!r}"
    pointer = abi.capsule_pointer(capsule, name)
    used = abi.USED_VERSIONED_NAME if versioned else abi.USED_LEGACY_NAME
    status = abi.capsule_rename(capsule, used)
    assert status == 0
    return Imported(pointer, versioned=versioned)


def take(producer: Any, **arguments: Any) -> Imported:
    """Take what `producer.__dlpack__` gives, by default in the versioned kind."""
    arguments.setdefault("max_version", (1, 3))
    return take_capsule(producer.__dlpack__(**arguments))


class TableError(Exception):
    """A function of the table reported `kind` and `message` through SetError."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message


class ExchangeTable:
    """The five functions that a type offers in `__dlpack_c_exchange_api__`.

    Python exceptions that a function sets are raised here; a failure without one is an
    AssertionError, for the standard asks for it.
    """

    def __init__(self, tensor_type: type) -> None:
        capsule = tensor_type.__dlpack_c_exchange_api__  # type: ignore[attr-defined]
        assert abi.capsule_name(capsule) == abi.TABLE_NAME
        self.address: int = abi.capsule_pointer(capsule, abi.TABLE_NAME)
        struct = abi.DLPackExchangeAPI.from_address(self.address)
        self.version = (struct.version.major, struct.version.minor)
        self.prev_api = struct.prev_api
        self._allocator = abi.ALLOCATOR(struct.managed_tensor_allocator)
        self._from_py = abi.FROM_PY_OBJECT(struct.managed_tensor_from_py_object_no_sync)
        self._to_py = abi.TO_PY_OBJECT(struct.managed_tensor_to_py_object_no_sync)
        self._to_dltensor = abi.FROM_PY_OBJECT(struct.dltensor_from_py_object_no_sync)
        self._stream = abi.WORK_STREAM(struct.current_work_stream)

    def take(self, tensor: Any) -> Imported:
        """managed_tensor_from_py_object_no_sync"""
        out = ctypes.c_void_p()
        status = self._from_py(id(tensor), ctypes.addressof(out))
        assert status == 0, "failed without a Python exception"
        assert out.value, "a success that hands nothing out"
        return Imported(out.value, versioned=True)

    def borrow(self, tensor: Any) -> Borrowed:
        """dltensor_from_py_object_no_sync; read before `tensor` changes or goes."""
        out = abi.DLTensor()
        status = self._to_dltensor(id(tensor), ctypes.addressof(out))
        assert status == 0, "failed without a Python exception"
        return Borrowed(out)

    def give(self, pointer: int) -> Any:
        """managed_tensor_to_py_object_no_sync; the struct at `pointer` is stolen."""
        out = ctypes.py_object()
        status = self._to_py(pointer, ctypes.addressof(out))
        assert status == 0, "failed without a Python exception"
        tensor = out.value
        # `out` holds the reference the function made, and drops none when it goes.
        abi.decrease_reference(tensor)
        return tensor

    def allocate(
        self,
        shape: Sequence[int],
        dtype: tuple[int, int, int] = (abi.FLOAT, 32, 1),
        device: tuple[int, int] = (abi.CPU, 0),
    ) -> Imported:
        """managed_tensor_allocator; what it reports through SetError is a TableError."""
        extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        prototype = abi.DLTensor(
            device=abi.DLDevice(*device),
            ndim=len(shape),
            dtype=abi.DLDataType(*dtype),
            shape=ctypes.addressof(extents),
        )
        reported: list[tuple[str, str]] = []

        @abi.SET_ERROR
        def set_error(_context: int, kind: bytes, message: bytes) -> None:
            reported.append((kind.decode(), message.decode()))

        out = ctypes.c_void_p()
        status = self._allocator(
            ctypes.addressof(prototype),
            ctypes.addressof(out),
            None,
            # (no ctypes.cast: without the GIL, CPython 3.13 and 3.14 lose an object at each)
            ctypes.c_void_p.from_buffer(set_error),
        )
        if status != 0:
            assert len(reported) == 1, "a failed allocation reports once"
            assert not out.value, "a failed allocation hands nothing out"
            raise TableError(*reported[0])
        assert not reported
        assert out.value
        return Imported(out.value, versioned=True)

    def work_stream(self, device: tuple[int, int]) -> int | None:
        """current_work_stream: the stream's address, `None` for NULL."""
        out = ctypes.c_void_p(1)
        status = self._stream(*device, ctypes.addressof(out))
        assert status == 0, "failed without a Python exception"
        return out.value
