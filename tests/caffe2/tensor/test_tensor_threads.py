# SPDX-License-Identifier: Apache-2.0
"""Tensors in several threads: no crash, no torn view, each deleter once."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from bridge import c10, caffe2

from .external_block import Block
from .state import filled

ROUNDS = 300


def together(*tasks: Callable[[], object]) -> None:
    """Run the tasks at once, each many times; raise what one of them raised."""
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], object]) -> None:
        start.wait()
        for _ in range(ROUNDS):
            task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        for future in [pool.submit(run, task) for task in tasks]:
            future.result()


def look(tensor: caffe2.Tensor) -> None:
    """Read what there is; between another thread's Resize and mutable_data there is nothing."""
    try:
        view = tensor.data()
    except c10.EnforceNotMet:
        return
    assert len(list(view)) == len(view)


CHANGES: dict[str, Callable[[caffe2.Tensor], object]] = {
    "Resize": lambda t: (t.Resize(3), t.Resize(5000), t.mutable_data("float32")),
    "type": lambda t: (t.mutable_data("float64"), t.mutable_data("int8")),
    "kind": lambda t: (t.mutable_data("string"), t.mutable_data("float32")),
    "Extend": lambda t: (t.Extend(100), t.ReserveSpace(1), t.Resize(4)),
    "FreeMemory": lambda t: (t.FreeMemory(), t.mutable_data("float32")),
    "CopyFrom": lambda t: (t.CopyFrom(filled((30_000,))), t.CopyFrom(filled((2,), "int64"))),
    "ShareData": lambda t: (t.Resize(4), t.ShareData(filled((4,)))),
    "reset": lambda t: (t.storage().reset(), t.mutable_data("float32")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_one_thread_changes_a_tensor_that_another_reads(
    change: Callable[[caffe2.Tensor], object],
) -> None:
    tensor = filled((2000,))
    alias = tensor.Alias()
    together(lambda: change(tensor), lambda: look(tensor), lambda: look(alias))
    assert tensor.numel() == np.prod(tensor.sizes())


def test_two_threads_change_one_tensor() -> None:
    tensor = filled((4,))

    def grow() -> None:
        tensor.Resize(2000)
        tensor.mutable_data("float32")

    def shrink() -> None:
        tensor.Resize(4)
        tensor.mutable_data("int64")

    def copy(call: Callable[[], object]) -> None:
        with contextlib.suppress(c10.EnforceNotMet):  # another thread gave it other sizes meanwhile
            call()

    together(
        grow,
        shrink,
        lambda: copy(lambda: tensor.Extend(1)),
        lambda: copy(tensor.Clone),
        lambda: look(tensor),
    )
    assert tensor.storage().use_count() == 1


@pytest.mark.parametrize("columns", [1, 20_000])  # copied without the GIL from 64 KiB on
def test_threads_that_append_rows_lose_none(columns: int) -> None:
    tensor = filled((1, columns))
    rows = 40

    def append() -> None:
        for _ in range(rows):
            tensor.Extend(1, 0)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(append) for _ in range(4)]:
            future.result()
    assert tensor.sizes() == (1 + 4 * rows, columns)
    assert tensor.data().size == (1 + 4 * rows) * columns


def test_threads_that_extend_to_a_number_reach_it_exactly() -> None:
    tensor = filled((1, 20_000))

    def append() -> None:
        for rows in range(2, 60):
            with contextlib.suppress(c10.EnforceNotMet):  # there are more already
                tensor.ExtendTo(rows, 0)

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(append) for _ in range(4)]:
            future.result()
    assert tensor.sizes() == (59, 20_000)


def test_deleters_called_from_many_threads_are_called_once() -> None:
    lock = threading.Lock()
    deleted: list[int] = []
    blocks: list[Any] = []

    def share_and_let_go() -> None:
        array = np.zeros(8, np.float32)
        with lock:
            blocks.append(array)
        tensor = caffe2.Tensor((8,), "cpu")
        tensor.ShareExternalPointer(array.ctypes.data, "float32", 0, deleted.append)
        alias, view = tensor.Alias(), tensor.data()
        tensor.FreeMemory()
        view[0] = 1
        del alias, view

    together(*[share_and_let_go] * 4)
    gc.collect()
    assert sorted(deleted) == sorted(array.ctypes.data for array in blocks)
    assert len(deleted) == 4 * ROUNDS


def test_a_deleter_is_called_in_the_thread_that_drops_the_last_view() -> None:
    block = Block()
    views = [block.tensor().data()]
    called_in: list[int] = []
    thread = threading.Thread(target=lambda: (called_in.append(len(block.deleted)), views.clear()))
    thread.start()
    thread.join()
    gc.collect()
    assert called_in == [0]
    assert block.deleted == [block.address]


def test_a_deleter_may_use_the_tensor_that_freed_the_memory() -> None:
    """It sees the tensor as it is after the call that let the memory go."""
    tensor = caffe2.Tensor((4,), "cpu")
    memory = np.arange(4, dtype=np.float32)
    seen: list[Any] = []

    def delete(address: int) -> None:
        assert address == memory.ctypes.data
        seen.append((tensor.storage().data_ptr() != address, tensor.capacity_nbytes()))
        tensor.FreeMemory()
        tensor.Resize(2)

    tensor.ShareExternalPointer(memory.ctypes.data, "float32", 0, delete)
    elements = tensor.mutable_data("float64")  # and then the deleter let that go, too
    elements[:] = 1
    assert seen == [(True, 32)]
    assert tensor.sizes() == (2,)
    tensor.mutable_data("int8")[:] = 1
    assert tensor.data().tolist() == [1, 1]
    assert seen == [(True, 32)]
