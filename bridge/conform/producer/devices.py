# SPDX-License-Identifier: Apache-2.0
"""The device that a producer states for its tensor."""

from __future__ import annotations

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export, calls
from bridge.conform.kit.given import given, made, references
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def said(tensor: Any) -> tuple[int, int]:
    """Return what ``__dlpack_device__`` gives; where that has not the form, the case is skipped."""
    device = tensor.__dlpack_device__()
    try:
        kind, number = map(int, device)
    except (TypeError, ValueError):
        skip(f"__dlpack_device__() gave {device!r}, which are not two integers")
    return kind, number


def producer_device_form(make: Make) -> None:
    device = made(make, given(np.arange(6, dtype="f4"))[0]).__dlpack_device__()
    if not isinstance(device, tuple) or len(device) != 2:
        broken(f"__dlpack_device__() gave {type(device).__name__} {device!r}")
    for number in device:
        if not hasattr(type(number), "__index__") or isinstance(number, bool):
            broken(f"__dlpack_device__() gave {device!r}, which are not two integers")


def producer_device_known(make: Make) -> None:
    kind, number = said(made(make, given(np.arange(6, dtype="f4"))[0]))
    if kind not in {1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}:
        broken(f"__dlpack_device__() gave the device type {kind}")
    if number < 0:
        broken(f"__dlpack_device__() gave the device number {number}")


def producer_device_agrees(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    wanted = said(tensor)
    for call in calls(tensor):
        export = Export(tensor, **call)
        managed = export.managed
        if (managed.device_type, managed.device_id) != wanted:
            found = (managed.device_type, managed.device_id)
            broken(f"__dlpack_device__() says {wanted}, and the capsule {found}")


def producer_device_is_cpu(make: Make) -> None:
    from_array = given(np.arange(6, dtype="f4"))
    export = Export(made(make, from_array[0]))
    if not from_array[1].holds(export.start):
        skip("the export does not lie in the given array")
    if export.managed.device_type not in (1, 3, 11, 13):
        broken(f"memory of the CPU is exported as device type {export.managed.device_type}")


def producer_device_number(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    export = Export(tensor)
    managed = export.managed
    for kind, number in (said(tensor), (managed.device_type, managed.device_id)):
        if kind in (1, 3, 11, 13) and number != 0:
            broken(f"the memory of device type {kind} has the device number {number}")


def producer_device_alone(make: Make) -> None:
    array, _watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    first = tuple(tensor.__dlpack_device__())
    before = references(tensor), references(array)
    for _ in range(5):
        if tuple(tensor.__dlpack_device__()) != first:
            broken("__dlpack_device__() gave another device when it was asked again")
    if (references(tensor), references(array)) != before:
        broken("__dlpack_device__() took or gave up references to the tensor")
    Export(tensor).release()
    if tuple(tensor.__dlpack_device__()) != first:
        broken("__dlpack_device__() gave another device after an export")


def producer_device_without_export(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    dtypes = (np.dtype(object), np.dtype("U4"), np.dtype(">f8"), np.dtype("f8"))
    for array in (np.zeros(3, dtype) for dtype in dtypes):
        try:
            other = make(array)
        except Exception:
            continue
        try:
            device = other.__dlpack_device__()
        except Exception as error:
            broken(f"__dlpack_device__() raised {type(error).__name__}: {error}")
        if tuple(device) != tuple(tensor.__dlpack_device__()):
            broken(f"without an export __dlpack_device__() gave {device!r}")
