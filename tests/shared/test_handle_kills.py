# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed at any moment: nothing is left, nothing is torn, nobody waits."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at
from tests.helpers.sharing import descriptors, mappings, names, users_of, wait_with

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

LONGEST_S = 0.03  # within which a process is killed: what it does takes some microseconds


def forked_forever(step: Callable[[int], None]) -> int:
    """Return a forked child that takes one step after another until it is killed."""
    child = os.fork()
    if child == 0:
        try:
            i = 0
            while True:
                step(i)
                i += 1
        finally:
            os._exit(1)
    return child


def kill(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def kept_segments() -> set[int]:
    """Return the numbers of the files of all segments that some process has."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                maps = Path(f"/proc/{entry}/maps").read_text()
                found |= {
                    int(line.split()[4]) for line in maps.splitlines() if "/memfd:bridge" in line
                }
    return found


@pytest.mark.parametrize("seed", range(12))
def test_a_maker_is_killed(seed: int) -> None:
    """Whoever attaches its name meanwhile sees a whole segment, or none."""
    rng = random.Random(seed)
    before = kept_segments()

    def step(i: int) -> None:
        with bridge.share(np.full(1000, i), name="t-kill"):
            pass

    child = forked_forever(step)
    end = time.monotonic() + rng.uniform(0, LONGEST_S)
    seen = []
    while time.monotonic() < end:
        with contextlib.suppress(FileNotFoundError):
            x = bridge.attach("t-kill").numpy()
            assert (x == x[0]).all()
            seen.append(x)
    kill(child)
    assert len(mappings()) <= len(seen) + 1
    del seen[:]
    x = None
    with pytest.raises(FileNotFoundError):
        bridge.attach("t-kill")
    with bridge.share(at.zeros(1), name="t-kill"):
        assert bridge.attach("t-kill").shape == (1,)
    assert kept_segments() - before == set()
    assert names() == []


@pytest.mark.parametrize("seed", range(12))
def test_a_reader_is_killed(seed: int) -> None:
    rng = random.Random(100 + seed)
    with bridge.share({"x": np.arange(1000)}, name="t-read") as shared:
        inode = os.stat(shared.path).st_ino

        def step(i: int) -> None:
            del i
            assert bridge.attach("t-read")["x"][-1].item() == 999
            with bridge.share(bridge.attach(shared.path)["x"][5:], name="t-part"):
                bridge.attach("t-part")

        child = forked_forever(step)
        time.sleep(rng.uniform(0, LONGEST_S))
        kill(child)
        assert users_of(inode) == [os.getpid()]
        assert shared.value["x"][-1].item() == 999
        with bridge.share(at.zeros(1), name="t-part"):
            pass
    assert names() == []


@pytest.mark.parametrize("seed", range(12))
def test_the_sender_of_messages_is_killed(seed: int) -> None:
    rng = random.Random(200 + seed)
    before = kept_segments()
    reading, writing = multiprocessing.Pipe(duplex=False)

    def step(i: int) -> None:
        writing.send(bridge.share(np.full(100, i)))

    child = forked_forever(step)
    time.sleep(rng.uniform(0, LONGEST_S))
    kill(child)
    writing.close()
    while True:
        try:
            reading.recv()
        except FileNotFoundError:
            continue  # its sender ended before it was received
        except EOFError:
            break
        raise AssertionError("a message of a process that is gone arrived")
    reading.close()
    assert kept_segments() - before == set()


@pytest.mark.parametrize("seed", range(12))
def test_the_receiver_of_messages_is_killed(seed: int) -> None:
    """What was not received is held until the sender ends: another receiver may come."""
    rng = random.Random(300 + seed)
    before = kept_segments()
    reading, writing = multiprocessing.Pipe(duplex=False)

    def send() -> None:
        # a process of its own, whose messages end with it
        def receive(i: int) -> None:
            assert reading.recv().value.shape == (100,)

        receiver = forked_forever(receive)
        end = time.monotonic() + rng.uniform(0, LONGEST_S)
        while time.monotonic() < end:
            writing.send(bridge.share(np.full(100, 1.0)))
        kill(receiver)
        bridge.share(np.zeros(1)).close()

    child = os.fork()
    if child == 0:
        try:
            send()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    reading.close()
    writing.close()
    assert kept_segments() - before == set()


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_process_is_killed_while_it_starts(method: str) -> None:
    rng = random.Random(method)
    context = multiprocessing.get_context(method)
    with bridge.share(np.arange(3)) as shared:
        inode = os.stat(shared.path).st_ino
        for _ in range(3):
            process: Any = context.Process(target=wait_with, args=(shared, shared.value))
            process.start()
            time.sleep(rng.uniform(0, 0.1))
            process.kill()
            process.join()
        assert users_of(inode) == [os.getpid()]
    assert (descriptors(), mappings()) == ([], [])
