# SPDX-License-Identifier: Apache-2.0
"""When, how often and with which argument a consumer calls the deleter."""

from __future__ import annotations

import gc
import threading

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import settle, values_of
from bridge.conform.kit.source import Source, imported, required
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]
    ToNumPy = Callable[[Any], Any]


def consumer_deleter_called(from_dlpack: FromDLPack) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4"), version=version)
        tensor = imported(from_dlpack, source)
        del tensor
        if 0 in source.deletions():
            broken("the tensor was collected, and the deleter was never called")


def consumer_deleter_called_always(from_dlpack: FromDLPack) -> None:
    for values in (np.zeros((0, 3)), np.array(7.5), np.arange(24.0).reshape(2, 3, 4)):
        source = Source(values)
        try:
            from_dlpack(source)
        except Exception:
            gc.collect()
        if any(times != 1 for times in source.deletions()):
            broken(
                f"a tensor of shape {values.shape} was collected; its deleter was called "
                f"{source.deletions()} times"
            )


def consumer_deleter_once(from_dlpack: FromDLPack) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4"), version=version)
        tensor = imported(from_dlpack, source)
        del tensor
        if max(source.deletions()) > 1:
            export = source.exports[-1]
            times = len(export.deleted)
            where = " and by its capsule, too" if export.times() > times else ""
            broken(f"the deleter was called {times} times by the consumer{where}")


def consumer_deleter_argument(from_dlpack: FromDLPack) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4"), version=version)
        tensor = imported(from_dlpack, source)
        del tensor
        settle()
        if not all(source.exports[-1].deleted):
            broken("the deleter was called with something else than its structure")


def consumer_deleter_not_early(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4"), version=version)
        tensor = imported(from_dlpack, source)
        settle()
        if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
            broken("the deleter was called while the tensor used the memory")
        if source.called() and source.watch.holds(np.asarray(to_numpy(tensor)).ctypes.data):
            broken("the deleter was called while the tensor used the memory")
        del tensor


def consumer_deleter_not_early_unseen(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    try:
        tensor = from_dlpack(source, copy=False)
    except Exception:
        skip("copy=False is refused")
    if source.called():
        broken("with copy=False the deleter was called while the tensor was alive")
    del tensor


def consumer_deleter_null(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4"), version=version, deleter=None)
        tensor = required(from_dlpack, source, "a structure whose deleter is NULL")
        if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
            broken("a structure whose deleter is NULL was read wrongly")
        del tensor
        settle()


def consumer_deleter_null_context(from_dlpack: FromDLPack) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4"), version=version, manager_ctx=None)
        tensor = required(from_dlpack, source, "a structure whose manager_ctx is NULL")
        del tensor
        if 0 in source.deletions():
            broken("manager_ctx is NULL, and the deleter was never called")


def consumer_deleter_null_unseen(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"), deleter=None)
    tensor = required(from_dlpack, source, "a structure whose deleter is NULL")
    del tensor
    settle()


def consumer_deleter_each(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensors = [imported(from_dlpack, source) for _ in range(5)]
    del tensors[3], tensors[0]
    settle()
    tensors.clear()
    if source.deletions() != [1] * len(source.exports):
        broken(f"five imports; their deleters were called {source.deletions()} times")


def consumer_deleter_refused_type(from_dlpack: FromDLPack) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4"), version=version, code=99)
        try:
            from_dlpack(source)
        except Exception:
            gc.collect()
        else:
            skip("it takes elements of the unknown code 99")
        for times, export in zip(source.deletions(), source.exports, strict=True):
            if times == 0:
                broken("the capsule was taken, refused, and its deleter never called")
            if times > 1 or len(export.deleted) > 1:
                broken(
                    "the capsule was refused, and its deleter is called twice: by the consumer, "
                    "and by the capsule, which is not renamed"
                )


def consumer_deleter_refused_device(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"), device=(8, 0))
    try:
        from_dlpack(source)
    except Exception:
        gc.collect()
    else:
        skip("it takes a tensor on Metal")
    if any(times != 1 for times in source.deletions()):
        broken(
            f"a tensor on another device was refused, and its deleter is called "
            f"{max(source.deletions())} times, by the consumer or by the capsule"
        )


def consumer_deleter_refused_shape(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"), ndim=-1)
    try:
        from_dlpack(source)
    except Exception:
        gc.collect()
    else:
        skip("it takes a negative number of dimensions")
    if any(times != 1 for times in source.deletions()):
        broken(
            f"a malformed tensor was refused, and its deleter is called "
            f"{max(source.deletions())} times, by the consumer or by the capsule"
        )


def consumer_deleter_in_thread(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensors = [imported(from_dlpack, source)]
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    if source.deletions() != [1]:
        broken(f"another thread dropped the tensor; its deleter was called {source.called()} times")


def consumer_threads(from_dlpack: FromDLPack, to_numpy: Any = None) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    sources = [Source(np.full(6, n, "f4")) for n in range(4)]
    wrong: list[str] = []

    def work(source: Source) -> None:
        for _ in range(10):
            try:
                tensor = from_dlpack(source)
                if to_numpy and not (values_of(to_numpy, tensor) == source.wanted).all():
                    wrong.append("the values of another")
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}")

    # The memory is shared by ten exports one after the other, and stays as it is.
    for source in sources:
        source.poison = False
    threads = [threading.Thread(target=work, args=(source,)) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        broken("four threads called from_dlpack at once, and one saw other values or an error")
    if any(set(source.deletions()) != {1} for source in sources):
        broken("four threads called from_dlpack; not each deleter was called once")


def consumer_thread_other(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"))
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(from_dlpack(source))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if isinstance(found[0], Exception):
        broken(f"in another thread from_dlpack raised {type(found[0]).__name__}: {found[0]}")
    settle()
    if values_of(to_numpy, found[0]).tolist() != np.arange(6.0).tolist():
        broken("a tensor that another thread imported has other values")
