# SPDX-License-Identifier: Apache-2.0
"""The deleter of a producer: its effect, when it runs, and from where."""

from __future__ import annotations

import ctypes
import sys
import threading

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export, calls, ways
from bridge.conform.kit.given import given, immortal, made, references, settle
from bridge.conform.kit.lying import lying
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def producer_deleter_frees(make: Make) -> None:
    for call in ways(make):
        array, watch = given(np.arange(6, dtype="f4"))
        tensor = made(make, array)
        export = lying(tensor, watch, **call)
        export.release()
        del export
        del array, tensor
        if watch.alive():
            broken("the deleter was called, and the memory is still held")


def producer_deleter_holds_until_called(make: Make) -> None:
    for call in ways(make):
        array, watch = given(np.arange(6, dtype="f4"))
        tensor = made(make, array)
        export = lying(tensor, watch, **call)
        export.take()
        del array, tensor
        export.capsule = None
        if not watch.alive():
            broken("the memory was freed before the deleter was called")
        export.delete()


def references_kept(make: Make, end: Callable[[Export], None], what: str) -> None:
    """End the case as broken if exports that end like this leave or take references."""
    array, watch = given(np.arange(6, dtype="f4"))
    immortal(array)
    lying(made(make, array), watch).release()
    for values in (array, array[6:]):
        tensor = made(make, values)
        immortal(tensor, values)
        references_kept_by(tensor, array, end, what)


def references_kept_by(tensor: Any, array: Any, end: Callable[[Export], None], what: str) -> None:
    """End the case as broken if exports of a tensor leave or take references to it or its array."""
    for call in calls(tensor):
        Export(tensor, **call).release()
        before = references(tensor), references(array)
        for _ in range(5):
            end(Export(tensor, **call))
        after = references(tensor), references(array)
        if after > before:
            broken(f"{what} left references to the tensor")
        if after < before:
            broken(f"{what} gave up more references than their exports took")


def producer_deleter_once_each(make: Make) -> None:
    references_kept(make, Export.release, "exports whose deleter was called once")


def producer_unused_capsule_once(make: Make) -> None:
    references_kept(make, lambda export: None, "capsules that nobody took")


def producer_deleter_deletes_self(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    for call in (*calls(tensor), {"max_version": (1, 3), "copy": True}):
        try:
            tensor.__dlpack__(**call)
        except Exception:
            continue  # it does not know copy, or makes none
        left = []
        for _ in range(3):  # Python keeps some hundreds of blocks for itself at first
            settle()
            before = sys.getallocatedblocks()
            for _ in range(500):
                Export(tensor, **call).release()
            settle()
            left.append(sys.getallocatedblocks() - before)
        if min(left) > 400:
            broken("each export that was deleted left memory behind")


def producer_deleter_in_thread(make: Make) -> None:
    for call in ways(make):
        array, watch = given(np.arange(6, dtype="f4"))
        tensor = made(make, array)
        export = lying(tensor, watch, **call)
        export.take()
        export.capsule = None
        thread = threading.Thread(target=export.delete)
        thread.start()
        thread.join()
        del export, thread
        del array, tensor
        if watch.alive():
            broken("the deleter was called by another thread, and the memory is still held")


def producer_deleter_without_python(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    export = lying(tensor, watch)
    export.take()
    export.capsule = None
    del array, tensor
    identity = ctypes.c_uint64()
    library = ctypes.CDLL(None)
    if not hasattr(library, "pthread_create"):
        skip("there is no pthread_create")
    pointers = [ctypes.c_void_p] * 4
    library.pthread_create.argtypes = pointers
    library.pthread_join.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    library.pthread_create(ctypes.addressof(identity), None, export.managed.deleter, export.address)
    library.pthread_join(identity.value, None)
    if watch.alive():
        broken("a thread that Python does not know called the deleter, and the memory is held")


def producer_deleter_with_gil(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    export = lying(tensor, watch)
    export.take()
    export.capsule = None
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(export.managed.deleter)(export.address)
    del array, tensor
    if watch.alive():
        broken("the deleter was called by a thread that has the GIL, and the memory is held")


def producer_tensor_after_deleter(make: Make, to_numpy: Callable[[Any], Any]) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    for call in calls(tensor):
        Export(tensor, **call).release()
        settle()
        if np.asarray(to_numpy(tensor)).tolist() != np.arange(6.0).tolist():
            broken("after its export was deleted the tensor has other values")
        again = Export(tensor, **call)
        if again.values().tolist() != np.arange(6.0).tolist():
            broken("after its export was deleted the tensor exports other values")
