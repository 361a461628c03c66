# SPDX-License-Identifier: Apache-2.0
"""A call that takes too long ends the process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from bridge.caffe2.timeout_guard import CompleteInTimeOrDie, WatcherThread

LATE = """
import threading
from bridge.caffe2.timeout_guard import {name}
{call}
    threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("CompleteInTimeOrDie", "with CompleteInTimeOrDie(0.1):"),
        ("EuthanizeIfNecessary", "EuthanizeIfNecessary(0.1)\nif True:"),
    ],
)
def test_a_late_call_is_interrupted(name: str, call: str) -> None:
    script = LATE.format(name=name, call=call)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == -signal.SIGINT
    assert "Call did not finish in time. Timeout:0.1s" in done.stderr
    assert "KeyboardInterrupt" in done.stderr


def test_a_call_in_time_ends_the_watch() -> None:
    with CompleteInTimeOrDie(300):
        pass
    watcher = WatcherThread(300)
    watcher.start()
    watcher.complete()
    watcher.join()
    assert watcher.completed
