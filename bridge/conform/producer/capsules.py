# SPDX-License-Identifier: Apache-2.0
"""The results of `__dlpack__`: capsules, their names, and the end of one without a consumer."""

from __future__ import annotations

import sys

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export, asked, calls, misnamed
from bridge.conform.kit.given import given, made
from bridge.conform.kit.lying import lying
from bridge.conform.kit.structures import DLManagedTensorVersioned, capsule_name, capsule_pointer
from bridge.conform.kit.verdict import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def producer_methods(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    for method in ("__dlpack__", "__dlpack_device__"):
        if not callable(getattr(type(tensor), method, None)):
            broken(f"{type(tensor).__name__} has no method {method}")


def producer_gives_capsule(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    result = asked(tensor, max_version=(1, 3))
    if type(result).__name__ != "PyCapsule":
        broken(f"__dlpack__ gave {type(result).__name__}")


def producer_name_versioned(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    capsule = asked(tensor, max_version=(1, 3))
    name = capsule_name(capsule)
    first = DLManagedTensorVersioned.from_address(capsule_pointer(capsule, name))
    if name not in (b"dltensor", b"dltensor_versioned"):
        broken(f"with max_version=(1, 3) the capsule is named {name!r}")
    if misnamed(first, name):
        broken(f"the capsule is named {name!r} and holds the other structure")


def producer_name_old(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    capsule = asked(tensor)
    name = capsule_name(capsule)
    if name != b"dltensor":
        broken(f"without max_version the capsule is named {name!r}")
    if misnamed(DLManagedTensorVersioned.from_address(capsule_pointer(capsule, name)), name):
        broken("the capsule is named 'dltensor' and holds a DLManagedTensorVersioned")


def producer_name_lasts(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    for call in calls(tensor):
        capsule = asked(tensor, **call)
        others = [bytes([65 + n % 26]) * size for n in range(64) for size in range(1, 33)]
        if capsule_name(capsule) not in (b"dltensor", b"dltensor_versioned"):
            broken("the name of a capsule is lost while the capsule is alive")
        del others, capsule


def producer_fresh_capsule(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    for call in calls(tensor):
        first, second = Export(tensor, **call), Export(tensor, **call)
        if first.capsule is second.capsule or first.address == second.address:
            broken("two calls gave the same capsule or structure, which one consumer takes")


def producer_unused_capsule(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    del array
    held = [lying(tensor, watch, **call) for call in calls(tensor)]
    del tensor
    held.clear()
    if watch.alive():
        broken("a capsule that nobody took was collected, and the deleter did not free the memory")


def producer_used_capsule(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    del array
    held = [lying(tensor, watch, **call) for call in calls(tensor)]
    del tensor
    for export in held:
        export.take()
        export.capsule = None
    if not watch.alive():
        broken("the capsule was renamed and collected, and its destructor freed the memory")
    for export in held:
        if export.values().tolist() != np.arange(6.0).tolist():
            broken("the capsule was renamed and collected, and the values changed")
        export.delete()
    if watch.alive():
        broken("the deleter was called after the capsule was collected, and freed nothing")


def producer_capsule_after_deleter(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    del array
    errors: list[Any] = []
    sys.unraisablehook = errors.append
    for call in calls(tensor):
        export = lying(tensor, watch, **call)
        before = sys.getrefcount(tensor)
        export.take()
        export.delete()
        between = sys.getrefcount(tensor)
        export.capsule = None
        if errors or sys.getrefcount(tensor) != between or between > before:
            broken("the capsule of a deleted structure was collected, and touched it again")


def producer_destructor_raises_nothing(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    errors: list[Any] = []
    sys.unraisablehook = lambda args: errors.append(
        f"{type(args.exc_value).__name__}: {args.exc_value}"
    )
    for call in calls(tensor):
        export = Export(tensor, **call)
        del export
        export = Export(tensor, **call)
        export.release()
    if errors:
        broken(f"the destructor or the deleter raised {errors[0]}")
