# SPDX-License-Identifier: Apache-2.0
"""The C exchange table of a producer's type, and whether it agrees with `__dlpack__`."""

from __future__ import annotations

import ctypes

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export, integers, read_values
from bridge.conform.kit.given import given, made, references
from bridge.conform.kit.structures import (
    DELETER,
    DLManagedTensorVersioned,
    DLTensor,
    capsule_name,
    capsule_pointer,
)
from bridge.conform.kit.table import (
    ALLOCATOR,
    FROM_OBJECT,
    SET_ERROR,
    STREAM,
    VIEW,
    ExchangeAPI,
    table_of,
)
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def managed_of(tensor: Any) -> Any:
    """Return the result of managed_tensor_from_py_object_no_sync for a tensor."""
    table = table_of(type(tensor))
    if not table.managed_tensor_from_py_object_no_sync:
        skip("managed_tensor_from_py_object_no_sync is NULL")
    out = ctypes.c_void_p()
    status = FROM_OBJECT(table.managed_tensor_from_py_object_no_sync)(tensor, out)
    if status != 0 or not out.value:
        broken(f"managed_tensor_from_py_object_no_sync returned {status}, and {bool(out)} for out")
    return DLManagedTensorVersioned.from_address(out.value)


def view_of(tensor: Any) -> Any:
    """Return the result of dltensor_from_py_object_no_sync for a tensor."""
    table = table_of(type(tensor))
    if not table.dltensor_from_py_object_no_sync:
        skip("dltensor_from_py_object_no_sync is NULL, as it may be")
    view = DLTensor()
    status = VIEW(table.dltensor_from_py_object_no_sync)(tensor, view)
    if status != 0:
        broken(f"dltensor_from_py_object_no_sync returned {status}")
    return view


def description(tensor: Any) -> dict[str, Any]:
    """Return the fields of a structure, fit to compare."""
    found = {"ndim": tensor.ndim, "shape": integers(tensor.shape, tensor.ndim)}
    for name in ("device_type", "device_id", "code", "bits", "lanes"):
        found[name] = getattr(tensor, name)
    if 0 not in found["shape"]:
        found["strides"] = integers(tensor.strides, tensor.ndim)
    return found


def allocated(table: Any, prototype: Any) -> tuple[int, Any, list[Any]]:
    """Return the status of the allocator, its allocation, and the calls of SetError."""
    errors: list[Any] = []
    set_error = SET_ERROR(lambda context, kind, text: errors.append((context, kind, text)))
    if not table.managed_tensor_allocator:
        skip("managed_tensor_allocator is NULL")
    out = ctypes.c_void_p()
    status = ALLOCATOR(table.managed_tensor_allocator)(prototype, out, 4321, set_error)
    managed = DLManagedTensorVersioned.from_address(out.value) if out.value else None
    return status, managed, errors


def producer_table_on_type(make: Make) -> None:
    tensor = made(make, given(np.arange(6.0))[0])
    if getattr(type(tensor), "__dlpack_c_exchange_api__", None) is None:
        if getattr(tensor, "__dlpack_c_exchange_api__", None) is None:
            skip("the type has no C exchange table")
        broken("the tensor has __dlpack_c_exchange_api__, and its type has not")


def producer_table_capsule(make: Make) -> None:
    kind = type(made(make, given(np.arange(6.0))[0]))
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None:
        skip("the type has no C exchange table")
    if type(capsule).__name__ != "PyCapsule":
        broken(f"__dlpack_c_exchange_api__ is {type(capsule).__name__}")
    if capsule_name(capsule) != b"dlpack_exchange_api":
        broken(f"the capsule of the table is named {capsule_name(capsule)!r}")


def producer_table_version(make: Make) -> None:
    kind = type(made(make, given(np.arange(6.0))[0]))
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if type(capsule).__name__ != "PyCapsule":
        skip("the type has no C exchange table")
    table = ExchangeAPI.from_address(capsule_pointer(capsule, capsule_name(capsule)))
    if table.major != 1 or table.minor > 50:
        broken(f"the table is of version {table.major}.{table.minor}")


def producer_table_previous(make: Make) -> None:
    table = table_of(type(made(make, given(np.arange(6.0))[0])))
    seen = {ctypes.addressof(table)}
    while table.prev_api:
        if table.prev_api in seen:
            broken("prev_api leads back to a table that was there before")
        seen.add(table.prev_api)
        before, table = table, ExchangeAPI.from_address(table.prev_api)
        if (table.major, table.minor) >= (before.major, before.minor):
            broken(
                f"prev_api leads from version {before.major}.{before.minor} to "
                f"{table.major}.{table.minor}, which is not older"
            )


def producer_table_functions(make: Make) -> None:
    table = table_of(type(made(make, given(np.arange(6.0))[0])))
    for name in (
        "managed_tensor_allocator",
        "managed_tensor_from_py_object_no_sync",
        "managed_tensor_to_py_object_no_sync",
        "current_work_stream",
    ):
        if not getattr(table, name):
            broken(f"{name} is NULL")


def producer_table_static(make: Make) -> None:
    kind = type(made(make, given(np.arange(6.0))[0]))
    table = table_of(kind)
    before = bytes(table)
    others = [bytes([n]) * 64 for n in range(256)]
    again = table_of(type(made(make, given(np.arange(3))[0])))
    if ctypes.addressof(table_of(kind)) != ctypes.addressof(table) or bytes(table) != before:
        broken("the table moved or changed while it was in use")
    if bytes(again) != before:
        broken("another tensor of the same type has another table")
    del others


def producer_table_managed(make: Make) -> None:
    for values in (
        np.arange(6.0),
        np.arange(24).reshape(2, 3, 4),
        np.array(True),
        np.zeros((0, 3)),
    ):
        tensor = made(make, given(values)[0])
        managed = managed_of(tensor)
        if managed.major != 1:
            broken(f"managed_tensor_from_py_object_no_sync gave version {managed.major}")
        if managed.ndim and not managed.strides:
            broken("managed_tensor_from_py_object_no_sync gave strides NULL")
        if read_values(managed).tolist() != values.tolist():
            broken("managed_tensor_from_py_object_no_sync gave other values")
        if managed.deleter:
            DELETER(managed.deleter)(ctypes.addressof(managed))


def producer_table_managed_holds(make: Make) -> None:
    array, watch = given(np.arange(6.0))
    tensor = made(make, array)
    managed = managed_of(tensor)
    if not watch.holds(managed.data) or not managed.deleter:
        skip("the export does not lie in the given array")
    del array, tensor
    if not watch.alive() or read_values(managed).tolist() != np.arange(6.0).tolist():
        broken("the tensor was collected, and with it what the table exported")
    DELETER(managed.deleter)(ctypes.addressof(managed))
    if watch.alive():
        broken("the deleter of what the table exported freed nothing")


def producer_table_managed_once(make: Make) -> None:
    array, _watch = given(np.arange(6.0))
    tensor = made(make, array)
    for number in range(6):
        managed = managed_of(tensor)
        if managed.deleter:
            DELETER(managed.deleter)(ctypes.addressof(managed))
        if number == 0:
            before = references(tensor), references(array)
    if (references(tensor), references(array)) != before:
        broken("exports by the table that were deleted left or took references to the tensor")


def producer_table_agrees(make: Make) -> None:
    square = given(np.arange(12.0).reshape(3, 4))[0]
    arrays = [square, square.T, square[1:, ::2], given(np.arange(6, dtype="int16"))[0]]
    arrays += [given(np.array(2.5))[0], given(np.array([True, False]))[0], square[2:]]
    for array in arrays:
        try:
            tensor = make(array)
        except Exception:
            continue
        export, managed = Export(tensor), managed_of(tensor)
        if description(managed) != description(export.managed):
            broken(
                f"the table says {description(managed)}, and __dlpack__ "
                f"{description(export.managed)}"
            )
        if read_values(managed).tolist() != export.values().tolist():
            broken("the table exports other values than __dlpack__")


def producer_table_agrees_on_memory(make: Make) -> None:
    array, watch = given(np.arange(12.0))
    for begin in (0, 3):
        tensor = made(make, array[begin:])
        export, managed = Export(tensor), managed_of(tensor)
        if not watch.holds(export.start):
            skip("the export does not lie in the given array")
        if (managed.data or 0) + managed.byte_offset != export.start:
            broken("the table exports other memory than __dlpack__")


def producer_table_agrees_on_flags(make: Make) -> None:
    for writeable in (True, False):
        array, watch = given(np.arange(6.0))
        array.flags.writeable = writeable
        tensor = made(make, array)
        export, managed = Export(tensor), managed_of(tensor)
        if not export.versioned or not watch.holds(export.start):
            skip("__dlpack__ gives no flags for the given memory")
        if managed.flags != export.flags:
            broken(f"the table gives the flags {managed.flags:#b}, __dlpack__ {export.flags:#b}")


def producer_table_agrees_on_refusal(make: Make) -> None:
    tried = 0
    for array in (np.array([None, "text"], object), np.array(["a", "bc"])):
        try:
            tensor = make(array)
            table = table_of(type(tensor))
        except Exception:
            continue
        try:
            tensor.__dlpack__(max_version=(1, 3))
        except Exception as error:
            tried += 1
            kind = type(error)
        else:
            continue
        out = ctypes.c_void_p()
        try:
            status = FROM_OBJECT(table.managed_tensor_from_py_object_no_sync)(tensor, out)
        except Exception as error:
            if kind is BufferError and type(error) is not BufferError:
                broken(f"__dlpack__ raises BufferError, the table {type(error).__name__}")
            continue
        if status == 0:
            broken(f"__dlpack__ refuses {array.dtype}, and the table exports it")
    if not tried:
        skip("it has nothing that it refuses to export")


def producer_table_view(make: Make) -> None:
    for values in (np.arange(6.0), np.arange(24).reshape(2, 3, 4), np.array(True)):
        tensor = made(make, given(values)[0])
        view = view_of(tensor)
        if view.ndim and not view.strides:
            broken("dltensor_from_py_object_no_sync gave strides NULL")
        if read_values(view).tolist() != values.tolist():
            broken("dltensor_from_py_object_no_sync gave other values")


def producer_table_view_agrees(make: Make) -> None:
    square = given(np.arange(12.0).reshape(3, 4))[0]
    for array in (square, square.T, square[1:, ::2], square[2:]):
        tensor = made(make, array)
        export, view = Export(tensor), view_of(tensor)
        if description(view) != description(export.managed):
            broken(
                f"the table says {description(view)}, and __dlpack__ {description(export.managed)}"
            )
        if (view.data or 0) + view.byte_offset != export.start and export.start == Export(
            tensor
        ).start:
            broken("dltensor_from_py_object_no_sync shows other memory than __dlpack__")


def producer_table_view_owns_nothing(make: Make) -> None:
    array, watch = given(np.arange(6.0))
    tensor = made(make, array)
    view_of(tensor)
    before = references(tensor), references(array)
    for _ in range(5):
        view_of(tensor)
    if (references(tensor), references(array)) != before:
        broken("dltensor_from_py_object_no_sync took references to the tensor, which nobody frees")
    del array, tensor
    if watch.alive():
        broken("dltensor_from_py_object_no_sync holds the memory after the tensor is gone")


def producer_table_stream(make: Make) -> None:
    tensor = made(make, given(np.arange(6.0))[0])
    table = table_of(type(tensor))
    if not table.current_work_stream or tensor.__dlpack_device__()[0] != 1:
        skip("there is no current_work_stream of the CPU")
    out = ctypes.c_void_p(0xABCDEF)
    status = STREAM(table.current_work_stream)(1, 0, out)
    if status != 0:
        broken(f"current_work_stream returned {status} for the CPU")
    if out.value == 0xABCDEF:
        broken("current_work_stream returned 0 for the CPU, and did not set its result")


def producer_table_allocator(make: Make) -> None:
    table = table_of(type(made(make, given(np.arange(6.0))[0])))
    shape = (ctypes.c_int64 * 3)(2, 3, 4)
    address = ctypes.addressof(shape)
    for code, bits in ((2, 32), (2, 64), (0, 64)):
        prototype = DLTensor(8, 1, 0, 3, code, bits, 1, address, 8, 999)
        status, managed, errors = allocated(table, prototype)
        if status != 0 or managed is None:
            broken(f"managed_tensor_allocator returned {status}: {errors}")
        found = (managed.code, managed.bits, managed.lanes, integers(managed.shape, managed.ndim))
        if found != (code, bits, 1, [2, 3, 4]) or managed.device_type != 1:
            broken(
                f"managed_tensor_allocator was asked for {(code, bits, 1, [2, 3, 4])} on the "
                f"CPU, and gave {found} on device type {managed.device_type}"
            )
        if managed.major != 1 or not managed.data or not managed.strides:
            broken("managed_tensor_allocator gave another version, or NULL for data or strides")
        ctypes.memset(managed.data + managed.byte_offset, 1, 24 * bits // 8)
        if (read_values(managed) == read_values(managed).flat[0]).all() != 1:
            broken("what managed_tensor_allocator gave cannot be written")
        if managed.flags & 1:
            broken("managed_tensor_allocator gave memory that is read-only")
        if managed.deleter:
            DELETER(managed.deleter)(ctypes.addressof(managed))


def producer_table_allocator_is_new(make: Make) -> None:
    table = table_of(type(made(make, given(np.arange(6.0))[0])))
    shape = (ctypes.c_int64 * 1)(64)
    prototype = DLTensor(None, 1, 0, 1, 2, 64, 1, ctypes.addressof(shape), None, 0)
    both = [allocated(table, prototype)[1] for _ in range(2)]
    if None in both:
        skip("managed_tensor_allocator failed")
    if both[0].data == both[1].data:
        broken("managed_tensor_allocator gave the same memory twice")
    ctypes.memset(both[0].data, 1, 512)
    ctypes.memset(both[1].data, 2, 512)
    if both[0].deleter:
        DELETER(both[0].deleter)(ctypes.addressof(both[0]))
    if not (read_values(both[1]).view("u1") == 2).all():
        broken("memory of managed_tensor_allocator changed with that of another tensor")


def producer_table_allocator_errors(make: Make) -> None:
    table = table_of(type(made(make, given(np.arange(6.0))[0])))
    shape = (ctypes.c_int64 * 1)(4)
    good = DLTensor(None, 1, 0, 1, 2, 32, 1, ctypes.addressof(shape), None, 0)
    if allocated(table, good)[2]:
        broken("managed_tensor_allocator succeeded, and called SetError")
    bad = DLTensor(None, 1, 0, 1, 211, 32, 1, ctypes.addressof(shape), None, 0)
    status, managed, errors = allocated(table, bad)
    if status == 0:
        broken(
            f"managed_tensor_allocator returned 0 for an unknown element type; out is set: "
            f"{managed is not None}"
        )
    if len(errors) != 1 or errors[0][0] != 4321:
        broken(
            f"managed_tensor_allocator failed, and called SetError {len(errors)} times, with the "
            f"context it was given: {[context == 4321 for context, _, _ in errors]}"
        )
