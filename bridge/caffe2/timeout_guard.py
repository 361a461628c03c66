# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.timeout_guard``: end the process if a call takes too long.

For calls that may block for ever, such as ``RunNet`` of a net that waits for a queue.
Follows caffe2/python/timeout_guard.py, PyTorch 1.8.1.

>>> from bridge.caffe2.timeout_guard import CompleteInTimeOrDie
>>> with CompleteInTimeOrDie(60.0):
...     pass
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["CompleteInTimeOrDie", "EuthanizeIfNecessary", "WatcherThread"]

_SECONDS_TO_END = 10.0


class WatcherThread(threading.Thread):
    """Ends the process after `timeout_secs` seconds, unless `complete` was called before.

    The stacks of all threads are printed, and the process gets SIGINT; if it has not ended ten
    seconds later, it is aborted.
    """

    def __init__(self, timeout_secs: float) -> None:
        super().__init__(daemon=True)
        self.timeout_secs = timeout_secs
        self._done = threading.Event()

    @property
    def completed(self) -> bool:
        """Whether `complete` was called."""
        return self._done.is_set()

    def complete(self) -> None:
        """End the watch."""
        self._done.set()

    def run(self) -> None:
        """Wait, and end the process if `complete` is not called."""
        if self._done.wait(self.timeout_secs):
            return
        log = logging.getLogger("timeout_guard")
        log.error(
            "Call did not finish in time. Timeout:%ss PID: %s", self.timeout_secs, os.getpid()
        )
        faulthandler.dump_traceback(sys.__stderr__ or 2)
        os.kill(os.getpid(), signal.SIGINT)
        if not self._done.wait(_SECONDS_TO_END):
            log.error("Process did not terminate cleanly in 10 s, forcing")
            os.abort()


@contextmanager
def CompleteInTimeOrDie(timeout_secs: float) -> Iterator[None]:
    """End the process unless the block ends within `timeout_secs` seconds."""
    watcher = WatcherThread(timeout_secs)
    watcher.start()
    try:
        yield
    finally:
        watcher.complete()


def EuthanizeIfNecessary(timeout_secs: float = 120) -> None:
    """End the process in `timeout_secs` seconds, for programs that hang while they exit."""
    WatcherThread(timeout_secs).start()
