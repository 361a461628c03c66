# SPDX-License-Identifier: Apache-2.0
"""The data, shape, strides and offset that a producer writes."""

from __future__ import annotations

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export, calls, integers
from bridge.conform.kit.given import given, made, shown, values_of
from bridge.conform.kit.lying import lying
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def layout_kept(make: Make, array: Any) -> None:
    """Compare the shape and the values of an export with the array's, in both calls."""
    wanted = np.array(array)
    tensor = made(make, array)
    for call in calls(tensor):
        export = Export(tensor, **call)
        if tuple(export.shape) != wanted.shape:
            broken(
                f"an array of shape {wanted.shape} is exported with shape {shown(export.shape, ())}"
            )
        if export.managed.ndim and not export.managed.shape:
            broken("shape is NULL")
        if export.values().tolist() != wanted.tolist():
            broken(f"{wanted.tolist()} is exported as {shown(export.values(), wanted)}")


def producer_values(make: Make) -> None:
    layout_kept(make, given(np.arange(6.0))[0])


def producer_shape(make: Make) -> None:
    layout_kept(make, given(np.arange(24.0).reshape(2, 3, 4))[0])
    layout_kept(make, given(np.arange(24.0).reshape(4, 1, 3, 2, 1))[0])


def producer_agrees_with_numpy(make: Make, to_numpy: Callable[[Any], Any]) -> None:
    tensor = made(make, given(np.arange(24).reshape(2, 3, 4))[0])
    seen, export = values_of(to_numpy, tensor), Export(tensor)
    if seen.shape != tuple(export.shape) or seen.tolist() != export.values().tolist():
        broken("the export has other values than the tensor")


def producer_strides_of_column_major(make: Make) -> None:
    layout_kept(make, given(np.arange(24.0).reshape(2, 3, 4))[0].T)
    layout_kept(make, given(np.arange(6.0).reshape(2, 3))[0].T)


def producer_strides_of_slices(make: Make) -> None:
    layout_kept(make, given(np.arange(12.0))[0][1::3])
    layout_kept(make, given(np.arange(24.0).reshape(4, 6))[0][1:3, ::2])


def producer_strides_negative(make: Make) -> None:
    layout_kept(make, given(np.arange(6.0))[0][::-1])
    layout_kept(make, given(np.arange(6.0).reshape(2, 3))[0][:, ::-1])


def producer_strides_zero(make: Make) -> None:
    layout_kept(make, np.broadcast_to(given(np.arange(3.0))[0], (4, 3)))


def producer_strides_given(make: Make) -> None:
    tensor = made(make, given(np.arange(6.0).reshape(2, 3))[0])
    export = Export(tensor)
    if not export.versioned or (export.managed.major, export.managed.minor) < (1, 2):
        skip("strides may be NULL before DLPack 1.2")
    for shape in ((6,), (2, 3), (1, 1), (0, 3), (3, 0), (2, 3, 4)):
        export = Export(made(make, given(np.arange(np.prod(shape) * 1.0).reshape(shape))[0]))
        if not export.managed.strides:
            broken(f"strides is NULL in an export of version 1.{export.managed.minor}")


def producer_strides_in_elements(make: Make) -> None:
    for dtype in ("float64", "int16", "complex128"):
        try:
            tensor = make(given(np.zeros((2, 3, 4), dtype))[0])
        except Exception:
            continue
        for call in calls(tensor):
            export = Export(tensor, **call)
            strides = integers(export.managed.strides, export.managed.ndim)
            if strides and sorted(strides) not in ([1, 4, 12], [1, 2, 6], [1, 2, 8], [1, 3, 6]):
                broken(f"{dtype} of shape (2, 3, 4) has the strides {shown(strides, (-1, -2))}")


def producer_zero_dimensions(make: Make) -> None:
    tensor = made(make, given(np.array(7.5))[0])
    for call in calls(tensor):
        export = Export(tensor, **call)
        if export.managed.ndim != 0:
            broken(f"a tensor without dimensions is exported with ndim={export.managed.ndim}")
        if export.values().tolist() != 7.5:
            broken(f"the tensor 7.5 is exported as {shown(export.values(), 7.5)}")


def producer_zero_size(make: Make) -> None:
    for shape in ((0,), (0, 3), (3, 0, 2)):
        tensor = made(make, given(np.zeros(shape))[0])
        for call in calls(tensor):
            found = Export(tensor, **call).shape
            if tuple(found) != shape:
                broken(f"an array of shape {shape} is exported with shape {shown(found, ())}")


def producer_zero_size_data(make: Make) -> None:
    tensor = made(make, given(np.zeros((0, 3)))[0])
    for call in calls(tensor):
        export = Export(tensor, **call)
        managed = export.managed
        if managed.data:
            broken("a tensor of size zero is exported with data that is not NULL")


def producer_sizes_not_negative(make: Make) -> None:
    for shape in ((6,), (2, 3), (0,), (1, 1, 1)):
        tensor = made(make, given(np.zeros(shape))[0])
        for call in calls(tensor):
            export = Export(tensor, **call)
            if not 0 <= export.managed.ndim < 65 or any(size < 0 for size in export.shape):
                broken(f"an array of shape {shape} is exported with negative sizes or ndim")


def producer_byte_offset(make: Make) -> None:
    array, watch = given(np.arange(12.0))
    for begin in (0, 1, 5):
        tensor = made(make, array[begin:])
        for call in calls(tensor):
            export = lying(tensor, watch, **call)
            place = export.start - array.ctypes.data
            if place != begin * 8:
                broken(f"a view from byte {begin * 8} on is exported from byte {place} on")


def producer_alignment(make: Make) -> None:
    for dtype in ("float64", "complex128", "int16"):
        for begin in (0, 1):
            try:
                tensor = make(given(np.arange(8).astype(dtype))[0][begin:])
            except Exception:
                continue
            for call in calls(tensor):
                export = Export(tensor, **call)
                if export.start % min(np.dtype(dtype).itemsize, 8):
                    broken(
                        f"the elements of {dtype} begin at an address that is not aligned to them"
                    )


def producer_writes_nothing(make: Make) -> None:
    array, _watch = given(np.arange(6.0))
    tensor = made(make, array)
    writeable = array.flags.writeable
    for call in calls(tensor):
        export = Export(tensor, **call)
        export.values()
        export.release()
        if array.tolist() != np.arange(6.0).tolist():
            broken("an export changed the values of the array")
        if array.flags.writeable != writeable:
            broken("an export made the array read-only")


def producer_data_not_null(make: Make) -> None:
    tensor = made(make, given(np.arange(6.0))[0])
    for call in calls(tensor):
        export = Export(tensor, **call)
        if not export.managed.data:
            broken("a tensor with elements is exported with data NULL")
