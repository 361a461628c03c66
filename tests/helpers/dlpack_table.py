# SPDX-License-Identifier: Apache-2.0
"""A producer type with a `__dlpack_c_exchange_api__` table of its own, good or broken.

All five functions of the standard are there. Each can be replaced by NULL, and the functions that
report by their return value can be made to lie.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_producer import ManagedTensor, Producer, TensorSpec

FUNCTIONS = (
    "managed_tensor_allocator",
    "managed_tensor_from_py_object_no_sync",
    "managed_tensor_to_py_object_no_sync",
    "dltensor_from_py_object_no_sync",
    "current_work_stream",
)


class Table:
    """A DLPackExchangeAPI that answers for objects of one `Producer` subclass.

    `calls` lists the names of the functions in the order in which they were called. `from_py`
    replaces what `managed_tensor_from_py_object_no_sync` does: it is given the object and returns
    the address for `out` (`None` for NULL) and the status. `work_stream` is what
    `current_work_stream` says (`None` for NULL), with `work_stream_status`; `work_devices` lists
    the device types and numbers that it was asked for.
    """

    def __init__(
        self,
        *,
        version: tuple[int, int] = (1, 3),
        null: tuple[str, ...] = (),
        prev: Table | None = None,
        from_py: Callable[[Any], tuple[int | None, int]] | None = None,
        work_stream: int | None = None,
        work_stream_status: int = 0,
    ) -> None:
        self.calls: list[str] = []
        self.received: list[int] = []
        self.from_py = from_py or self._make_managed
        self.work_devices: list[tuple[int, int]] = []
        self.work_stream = work_stream
        self.work_stream_status = work_stream_status
        functions = {
            "managed_tensor_allocator": abi.ALLOCATOR(self._allocate),
            "managed_tensor_from_py_object_no_sync": abi.FROM_PY_OBJECT(self._from_py),
            "managed_tensor_to_py_object_no_sync": abi.TO_PY_OBJECT(self._to_py),
            "dltensor_from_py_object_no_sync": abi.FROM_PY_OBJECT(self._to_dltensor),
            "current_work_stream": abi.WORK_STREAM(self._work_stream),
        }
        addresses = {
            name: None if name in null else ctypes.cast(function, ctypes.c_void_p).value
            for name, function in functions.items()
        }
        self._functions = functions
        self.prev = prev
        self.struct: abi.DLPackExchangeAPI = abi.DLPackExchangeAPI(
            version=abi.DLPackVersion(*version),
            prev_api=ctypes.addressof(prev.struct) if prev is not None else None,
            **addresses,
        )
        # A consumer may cache the table for as long as the process lives.
        abi.immortal(self)

    def capsule(self, name: bytes = abi.TABLE_NAME) -> Any:
        return abi.capsule_new(ctypes.addressof(self.struct), abi.immortal(name), None)

    def _make_managed(self, producer: Producer) -> tuple[int | None, int]:
        managed = ManagedTensor(producer.spec, versioned=True)
        producer.made.append(managed)
        return managed.address, 0

    def _from_py(self, producer: int, out: int) -> int:
        self.calls.append("managed_tensor_from_py_object_no_sync")
        address, status = self.from_py(abi.object_at(producer))
        ctypes.c_void_p.from_address(out).value = address
        return status

    def _to_dltensor(self, producer: int, out: int) -> int:
        self.calls.append("dltensor_from_py_object_no_sync")
        instance = abi.object_at(producer)
        # The producer keeps the arrays: a DLTensor given out this way owns nothing.
        instance.borrowed = ManagedTensor(instance.spec, versioned=True)
        source = ctypes.addressof(instance.borrowed.struct.dl_tensor)
        ctypes.memmove(out, source, ctypes.sizeof(abi.DLTensor))
        return 0

    def _to_py(self, managed: int, out: int) -> int:
        self.calls.append("managed_tensor_to_py_object_no_sync")
        self.received.append(managed)
        ctypes.c_void_p.from_address(out).value = id(abi.immortal(object()))
        return 0

    def _allocate(self, prototype: int, out: int, context: int, set_error: int) -> int:
        self.calls.append("managed_tensor_allocator")
        wanted = abi.DLTensor.from_address(prototype)
        shape = tuple((ctypes.c_int64 * wanted.ndim).from_address(wanted.shape or 0))
        numel = 1
        for extent in shape:
            numel *= extent
        memory = ctypes.create_string_buffer(max(numel * wanted.dtype.bits // 8, 1))
        strides = [1] * len(shape)
        for axis in range(len(shape) - 1, 0, -1):
            strides[axis - 1] = strides[axis] * shape[axis]
        spec = TensorSpec(
            ctypes.addressof(memory),
            shape,
            tuple(strides),
            code=wanted.dtype.code,
            bits=wanted.dtype.bits,
            owner=memory,
        )
        ctypes.c_void_p.from_address(out).value = ManagedTensor(spec, versioned=True).address
        return 0

    def _work_stream(self, device_type: int, device_id: int, out: int) -> int:
        self.calls.append("current_work_stream")
        self.work_devices.append((device_type, device_id))
        ctypes.c_void_p.from_address(out).value = self.work_stream
        return self.work_stream_status


def producer_type(table: Any, base: type[Producer] = Producer) -> type[Producer]:
    """A new subclass of `base` with `table` (a Table, or what is put in its place) on the type."""
    capsule = table.capsule() if isinstance(table, Table) else table
    return type("TableProducer", (base,), {"__dlpack_c_exchange_api__": capsule})
