# SPDX-License-Identifier: Apache-2.0
"""Every allocation of Python's may fail: a call then raises, leaves all as it was, and no leak.

Each call runs again and again; in the n-th run the n-th allocation of memory by Python fails, for
every n until a run needs no more. Memory of tensors has tests of its own, with an allocator that
fails: `tests/c10/test_allocator_failures.py`.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bridge import at, caffe2
from bridge.caffe2 import workspace

from .helpers.isolate import isolated

testcapi = pytest.importorskip("_testcapi", reason="this Python has no _testcapi")
if not hasattr(testcapi, "set_nomemory"):
    pytest.skip("this Python's _testcapi cannot make allocations fail", allow_module_level=True)

MOST = 3000  # allocations of one call; far more than any has
ENOUGH = 20  # runs without a failure, after which there is nothing left to fail


def _caffe2_tensor() -> caffe2.Tensor:
    tensor = caffe2.Tensor([2, 3, 4], "cpu")
    tensor.mutable_data("float32")[:] = list(range(24))
    return tensor


def _state(value: Any) -> Any:
    """What a user can see of a tensor; of anything else, the value."""
    if isinstance(value, (at.Tensor, caffe2.Tensor)):
        if not value.defined():
            return None
        held = None
        if value.storage_initialized():
            held = list(value.data())[:] if isinstance(value, caffe2.Tensor) else value.tolist()
        return (
            str(value.dtype()) if isinstance(value, caffe2.Tensor) else str(value.dtype),
            list(value.sizes()),
            list(value.strides()),
            value.storage().use_count(),
            value.storage().nbytes(),
            held,
        )
    return value


def _blobs() -> Any:
    return [
        (name, workspace.FetchBlob(name).tolist() if name != "s" else workspace.FetchBlob(name))
        for name in workspace.Blobs()
    ]


# What is made before a call, and the call itself.
CALLS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "Resize": (_caffe2_tensor, lambda t: t.Resize(5, 6, 7, 8)),
    "Resize fewer dimensions": (_caffe2_tensor, lambda t: t.Resize(2)),
    "ReserveSpace": (_caffe2_tensor, lambda t: t.ReserveSpace(100)),
    "ShrinkTo": (_caffe2_tensor, lambda t: t.ShrinkTo(1)),
    "Reshape": (_caffe2_tensor, lambda t: t.Reshape([4, 3, 2, 1])),
    "CopyFrom": (_caffe2_tensor, lambda t: t.CopyFrom(_SOURCE)),
    "Clone": (_caffe2_tensor, lambda t: t.Clone()),
    "UnsafeSharedInstance": (_caffe2_tensor, lambda t: t.UnsafeSharedInstance()),
    "FreeMemory": (_caffe2_tensor, lambda t: t.FreeMemory()),
    "sizes": (_caffe2_tensor, lambda t: t.sizes()),
    "data": (_caffe2_tensor, lambda t: t.data()),
}


_SOURCE = caffe2.Tensor([2, 3], "cpu")
_SOURCE.mutable_data("float32")[:] = [1.0] * 6


def _prepare() -> None:
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.arange(3.0))
    workspace.FeedBlob("y", np.arange(4.0))
    workspace.FeedBlob("s", "text")


def _is_for_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _all_runs(name: str) -> int:
    """Run the call with each of its allocations failing; the number of runs.

    A call may do without some of its allocations, so it ends after some runs in which none failed.
    """
    make, call = CALLS[name]
    untouched = 0
    for n in range(MOST):
        _prepare()
        value = make()
        before = _state(value), _blobs()
        failure: BaseException | None = None
        testcapi.set_nomemory(n, n + 1)
        try:
            call(value)
        except BaseException as error:  # noqa: BLE001 - looked at below
            testcapi.remove_mem_hooks()
            failure = error
        else:
            testcapi.remove_mem_hooks()
        if failure is None:
            untouched += 1
            if untouched == ENOUGH:
                return n
            continue
        untouched = 0
        assert _is_for_memory(failure), f"allocation {n}: {failure!r}"
        assert (_state(value), _blobs()) == before, f"allocation {n}: {failure!r}"
    raise AssertionError(f"{name} needs more than {MOST} allocations")


@isolated
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_finds_no_memory_changes_nothing(name: str) -> None:
    make, call = CALLS[name]
    _prepare()
    call(make())  # what is loaded and cached once
    _all_runs(name)
    gc.collect()
    blocks = sys.getallocatedblocks()
    runs = _all_runs(name)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 5 + runs, "each failure leaves memory behind"
