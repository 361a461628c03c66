# SPDX-License-Identifier: Apache-2.0
"""How long an export lasts, in every order; views; threads."""

from __future__ import annotations

import itertools
import threading

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export, calls, integers, ways
from bridge.conform.kit.given import given, made, settle
from bridge.conform.kit.lying import lying
from bridge.conform.kit.verdict import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def producer_outlives_tensor(make: Make) -> None:
    for call in ways(make):
        array, watch = given(np.arange(6, dtype="f4"))
        tensor = made(make, array)
        export = lying(tensor, watch, **call)
        del array, tensor
        if not watch.alive():
            broken("the tensor was collected, and with it the memory of its export")
        if export.values().tolist() != np.arange(6.0).tolist():
            broken("the tensor was collected, and the values of its export changed")


def producer_every_order(make: Make) -> None:
    for order in itertools.permutations(("array", "tensor", "capsule", "structure")):
        held: dict[str, Any] = {}
        held["array"], watch = given(np.arange(6, dtype="f4"))
        held["tensor"] = made(make, held["array"])
        export = lying(held["tensor"], watch)
        export.take()
        for name in order:
            if name == "capsule":
                export.capsule = None
            elif name == "structure":
                export.delete()
            else:
                del held[name]
            left = order[order.index(name) + 1 :]
            if "structure" in left and not watch.alive():
                broken(f"the memory was freed by giving up {name}, before the deleter was called")
        if watch.alive():
            broken(f"the memory is held after giving up {', '.join(order)}")


def producer_cycle(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    holder: list[Any] = [made(make, array)]
    holder.append(holder)
    export = lying(holder[0], watch)
    holder.append(export.capsule)
    export.take()
    export.capsule = None
    del array, holder
    if not watch.alive():
        broken("a cycle with the tensor was collected, and with it the memory of its export")
    export.delete()
    if watch.alive():
        broken("the tensor was in a cycle, and the deleter did not free the memory")


def producer_two_exports(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    first, second = lying(tensor, watch), lying(tensor, watch)
    del array, tensor
    first.release()
    if not watch.alive():
        broken("the deleter of one export freed the memory of another")
    if second.values().tolist() != np.arange(6.0).tolist():
        broken("the deleter of one export changed the values of another")
    second.release()
    if watch.alive():
        broken("both exports were deleted, and the memory is held")


def producer_shape_lasts(make: Make) -> None:
    array, _watch = given(np.arange(24, dtype="f4").reshape(2, 3, 4))
    tensor = made(make, array)
    for call in calls(tensor):
        export = Export(tensor, **call)
        others: list[Any] = [bytes([n]) * size for n in range(64) for size in range(8, 65, 8)]
        others.append(Export(made(make, given(np.arange(6.0).reshape(3, 2, 1))[0]), **call))
        settle()
        if integers(export.managed.shape, export.managed.ndim) != [2, 3, 4]:
            broken("the shape of an export changed while the export was alive")
        if export.values().tolist() != np.arange(24.0).reshape(2, 3, 4).tolist():
            broken("the strides or the values of an export changed while the export was alive")
        del others


def producer_view_is_zero_copy(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    for call in calls(tensor):
        export = lying(tensor, watch, **call)
        array[2] += 100
        if export.values()[2] != array[2]:
            broken("what was written to the array is not seen by the export")


def producer_view_of_part(make: Make) -> None:
    array, watch = given(np.arange(12, dtype="f4"))
    whole = made(make, array)
    part = made(make, array[3:7])
    before, after = lying(whole, watch), lying(part, watch)
    if after.start - before.start != 12 or after.shape != [4]:
        broken("a view of elements 3 to 6 does not begin at element 3 of the memory, with 4 of it")
    del array, whole, part
    before.release()
    if not watch.alive() or after.values().tolist() != [3.0, 4.0, 5.0, 6.0]:
        broken("the export of a view does not hold the memory of its base")


def producer_threads(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    lying(tensor, watch).release()
    wrong: list[str] = []
    shared = [tensor]

    def work() -> None:
        for _ in range(20):
            try:
                export = Export(shared[0])
                if export.values().tolist() != np.arange(6.0).tolist():
                    wrong.append("other values")
                export.release()
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        broken("four threads exported one tensor at once, and one saw other values or an error")
    del array, tensor
    shared.clear()
    if watch.alive():
        broken("four threads exported one tensor and deleted all exports, and the memory is held")


def producer_copy_true_lives(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    lying(tensor, watch).release()
    copy = Export(tensor, max_version=(1, 3), copy=True)
    copy.take()
    del tensor, array
    others = [np.full(6, -1.0) for _ in range(100)]
    if watch.alive() and watch.holds(copy.start):
        broken("copy=True gave the memory of the tensor itself")
    if copy.values().tolist() != np.arange(6.0).tolist():
        broken("the tensor was collected, and the values of its copy changed")
    copy.delete()
    del others
