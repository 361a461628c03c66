# SPDX-License-Identifier: Apache-2.0
"""How long a consumer keeps an import, in every order; views."""

from __future__ import annotations

import itertools

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import settle, values_of
from bridge.conform.kit.source import Source, imported
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]
    ToNumPy = Callable[[Any], Any]


def consumer_outlives_producer(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source)
    exports = source.exports
    del source
    settle()
    if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
        broken("the producer's object was collected, and the values changed")
    del tensor
    settle()
    if [one.times() for one in exports] != [1]:
        broken("the producer's object was collected first; the deleter was not called once")


def consumer_every_order(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for order in itertools.permutations(("source", "tensor", "view")):
        source = Source(np.arange(6, dtype="f4"))
        held: dict[str, Any] = {"source": source, "tensor": imported(from_dlpack, source)}
        held["view"] = to_numpy(held["tensor"])
        shared = source.watch.holds(held["view"].ctypes.data)
        exports = source.exports
        del source
        for name in order:
            del held[name]
            settle()
            if "view" in held and held["view"].tolist() != np.arange(6.0).tolist():
                broken(f"{name} was collected, and the view of the tensor changed")
            if "view" in held and shared and exports[-1].deleted:
                broken(f"{name} was collected, and the deleter called before the view was gone")
        if [one.times() for one in exports] != [1]:
            broken(f"after {', '.join(order)} were collected, the deleter was not called once")


def consumer_cycle(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    holder: list[Any] = [imported(from_dlpack, source)]
    holder.append(holder)
    del holder
    if source.deletions() != [1]:
        broken(
            f"a cycle with the tensor was collected; its deleter was called {source.called()} times"
        )


def consumer_view_holds(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source)
    try:
        part = tensor[2:5]
        settle()
        whole = values_of(to_numpy, part).tolist()
    except Exception:
        skip("the tensor has no slices")
    del tensor
    settle()
    if whole != [2.0, 3.0, 4.0] or values_of(to_numpy, part).tolist() != whole:
        broken("the tensor was collected, and the values of a slice of it changed")
    del part
    if source.deletions() != [1]:
        broken(f"after a slice was collected, the deleter was called {source.called()} times")


def consumer_array_holds(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"))
    view = to_numpy(imported(from_dlpack, source))
    settle()
    if view.tolist() != np.arange(6.0).tolist():
        broken(
            "the tensor was collected, and the values of its view changed: the deleter was "
            "called while the view used the memory"
        )
    if source.called() and source.watch.holds(view.ctypes.data):
        broken("the deleter was called while a view used the memory")
    del view
    if source.deletions() != [1]:
        broken(f"after the last view was collected, the deleter was called {source.called()} times")


def consumer_two_imports(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"), poison=False)
    first, second = imported(from_dlpack, source), imported(from_dlpack, source)
    if len(source.exports) != 2:
        broken(f"two imports made the producer export {len(source.exports)} times")
    used = [len(one.deleted) for one in source.exports]
    del first
    settle()
    if len(source.exports[0].deleted) != 1 or len(source.exports[1].deleted) != used[1]:
        broken("the first of two tensors was collected, and not its own deleter called")
    if values_of(to_numpy, second).tolist() != np.arange(6.0).tolist():
        broken("the first of two tensors was collected, and the values of the other changed")
    del second
    if source.deletions() != [1, 1]:
        broken("both of two tensors were collected, and not each deleter was called once")
