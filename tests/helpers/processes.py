# SPDX-License-Identifier: Apache-2.0
"""Several processes that run the same function: for operators that need more than one.

To be called in a test that is `@isolated`: its process has torch imported, and is forked.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bridge.caffe2 import workspace
from tests.helpers.operators import run_operator

KILLED = -signal.SIGKILL


def together(n: int, function: Callable[..., Any], folder: Path, *arguments: Any) -> list[int]:
    """Call ``function(rank, n, folder, *arguments)`` in `n` processes.

    Returns how each ended: 0, or minus the signal's number. An exception in one of them is an
    AssertionError with all their tracebacks.
    """
    children = []
    for rank in range(n):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                function(rank, n, folder, *arguments)
                status = 0
            # Whatever it was is in the report; the child must not go on in the test.
            except BaseException:  # noqa: BLE001
                (folder / f"failed-{rank}").write_text(traceback.format_exc())
            finally:
                os._exit(status)
        children.append(child)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    reports = [f"process {path.name}:\n{path.read_text()}" for path in folder.glob("failed-*")]
    assert not reports, "\n".join(reports)
    return ends


def trains_as_one_process(train: Callable[..., Any], folder: Path, n_weights: int) -> None:
    """Assert that 2 and 4 processes train to the weights of one.

    ``train(rank, n, folder)`` saves them as ``weights-{rank}.npz``.
    """
    for n in (1, 2, 4):
        (folder / str(n)).mkdir()
        together(n, train, folder / str(n))
    alone = np.load(folder / "1" / "weights-0.npz")
    assert len(alone.files) == n_weights
    for n in (2, 4):
        for rank in range(n):
            found = np.load(folder / str(n) / f"weights-{rank}.npz")
            for name in alone.files:
                np.testing.assert_allclose(found[name], alone[name], rtol=1e-5, atol=1e-6)


def killed() -> None:
    """End this process as a machine that fails does."""
    os.kill(os.getpid(), signal.SIGKILL)


def meet(rank: int, n: int, folder: Path, timeout_ms: int = 120_000) -> None:
    """Create the store "store" in a folder, and the common world "world".

    timeout_ms: long for a machine that is busy; a process that dies is noticed at once.
    """
    run_operator("FileStoreHandlerCreate", [], ["store"], path=str(folder / "store"))
    run_operator(
        "CreateCommonWorld",
        ["store"],
        ["world"],
        size=n,
        rank=rank,
        timeout_ms=timeout_ms,
        engine="GLOO",
    )


def wait_for(path: Path) -> None:
    """Wait until another process has made the file."""
    while not path.exists():
        time.sleep(0.01)


def feed(name: str, value: Any, dtype: Any = np.float32) -> None:
    """Feed an array of that type."""
    workspace.FeedBlob(name, np.array(value, dtype))


def fetch(name: str) -> Any:
    """Give the values of a blob as a list."""
    return workspace.FetchBlob(name).tolist()
