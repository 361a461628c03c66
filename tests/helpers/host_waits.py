# SPDX-License-Identifier: Apache-2.0
"""How often the host waited for a CUDA device, and streams for one another.

torch reports its own waits (`torch.cuda.set_sync_debug_mode`). Where a stand-in for CUDA's runtime
is loaded that counts the calls, all are counted: those of the bridge's other ways, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from collections.abc import Callable, Iterator

import torch

_WAITS = (0, 1, 2)  # of a stream or an event, of a device, of a copy from or to pageable memory


_ORDERS = (6, 7)  # events recorded on streams, and streams that wait for them


def counter(which: tuple[int, ...] = _WAITS) -> Callable[[], int] | None:
    """A function that returns the number of waits so far; None on a real device."""
    try:
        runtime = ctypes.CDLL(f"libcudart.so.{str(torch.version.cuda).partition('.')[0]}")
        count = runtime.standin_count
    except (OSError, AttributeError):
        return None
    count.restype = ctypes.c_longlong
    return lambda: sum(int(count(one)) for one in which)


@contextlib.contextmanager
def no_host_waits() -> Iterator[None]:
    """Fail if the host waits for a device inside."""
    count = counter()
    before = 0 if count is None else count()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls it a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
    if count is not None:
        assert count() == before, f"the host waited {count() - before} times"


@contextlib.contextmanager
def no_orders() -> Iterator[None]:
    """Fail if a stream is made to wait for another inside; on a real device nothing is counted."""
    count = counter(_ORDERS)
    before = 0 if count is None else count()
    yield
    if count is not None:
        assert count() == before, f"{count() - before} events were recorded or waited for"
