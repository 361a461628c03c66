# SPDX-License-Identifier: Apache-2.0
"""Calls a function in a forked process, which may crash, hang or end as it likes."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable

from bridge.annotation import Any
from bridge.conform.memory_used_once import use_memory_once

LIMIT = 3.0  # seconds
_STEP = 0.1
_IDLE = 0.5  # seconds without work after the limit, of a process that hangs
_EXTRA_MEMORY = 8 << 30  # bytes of address space that a case may add


def isolated(
    function: Callable[[], Any], limit: float = LIMIT, *, spoil: bool = True
) -> tuple[str, Any]:
    """Return how a call went: ``("done", result)``, ``("crash", text)``, or ``("hang", text)``.

    The call happens in a forked process, with its output thrown away; its result must be fit for
    JSON. limit: the longest time in seconds; a process that waited for a processor gets more.
    spoil: whether memory that Python frees is filled with 0xDD; it is not used again.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fork beside threads
        child = os.fork()
    if child == 0:
        _work(function, reading, writing, spoil)
    os.close(writing)
    try:
        answer = _answer(child, reading, limit)
    finally:
        os.close(reading)
        _kill(child)
        _, status = os.waitpid(child, 0)
    if answer is None:
        return "hang", f"it did not return within {limit:g} seconds"
    try:
        return "done", json.loads(answer)
    except ValueError:
        return "crash", _how_it_ended(status)


def _work(function: Callable[[], Any], reading: int, writing: int, spoil: bool) -> None:
    """Call the function in the child, write the result, and end the process."""
    try:
        os.close(reading)
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        faulthandler.disable()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        sys.stdin = sys.__stdin__
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        use_memory_once(spoil)
        _limit_memory()
        sys.setswitchinterval(0.005)
        warnings.simplefilter("ignore")
        gc.freeze()  # older objects need not be looked through at each collection
        data = json.dumps(function()).encode() + b"\n"
        while data:
            data = data[os.write(writing, data) :]
        os._exit(0)
    finally:
        os._exit(1)


def _limit_memory() -> None:
    """Limit the address space, so that a case that asks for all memory gets an error."""
    try:
        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = now + _EXTRA_MEMORY
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _answer(child: int, reading: int, limit: float) -> bytes | None:
    """Return the text of the child until it ended or its line was complete; None: it hangs."""
    answer = b""
    start = grown = time.monotonic()
    computed = 0.0
    while True:
        if select.select([reading], [], [], _STEP)[0]:
            data = os.read(reading, 1 << 16)
            answer += data
            if not data or answer.endswith(b"\n"):
                return answer
            continue
        # macOS has it since Python 3.13.
        if hasattr(os, "waitid") and os.waitid(
            os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT
        ):
            # It ended, and a process of its own keeps the pipe open.
            return answer
        now = time.monotonic()
        if now - start <= limit:
            continue
        before, (computed, waits) = computed, _work_of(child)
        if computed > before or not waits:
            grown = now
        if computed > limit or now - grown > _IDLE or now - start > 10 * limit:
            return None


def _work_of(child: int) -> tuple[float, bool]:
    """Return the seconds that a process has computed, and whether all its threads wait.

    One whose threads want to run, and get no processor, does not hang.
    """
    ticks, waits = 0, True
    try:
        for task in os.listdir(f"/proc/{child}/task"):
            with open(f"/proc/{child}/task/{task}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            waits = waits and fields[0] not in "RD"
    except OSError:
        waits = waits and not os.path.isdir("/proc/self/task")  # else a thread has just ended
    return ticks / os.sysconf("SC_CLK_TCK"), waits


def _kill(child: int) -> None:
    """Kill a child and the processes that it started."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def _how_it_ended(status: int) -> str:
    if not os.WIFSIGNALED(status):
        return f"it ended the process with status {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    try:
        return f"it ended the process by {signal.Signals(number).name}"
    except ValueError:
        return f"it ended the process by signal {number}"
