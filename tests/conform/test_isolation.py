# SPDX-License-Identifier: Apache-2.0
"""A function in a forked process may crash, hang, end the process or start others."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

from bridge.conform.isolation import isolated


def test_isolated_returns_the_result() -> None:
    assert isolated(lambda: {"a": [1, None]}) == ("done", {"a": [1, None]})


def test_a_crash_is_a_result() -> None:
    how, text = isolated(lambda: ctypes.c_int.from_address(8).value)
    assert (how, text) == ("crash", f"it ended the process by {signal.SIGSEGV.name}")


def test_an_end_of_the_process_is_a_result() -> None:
    assert isolated(lambda: os._exit(0)) == ("crash", "it ended the process with status 0")
    assert isolated(lambda: os._exit(3)) == ("crash", "it ended the process with status 3")


def test_a_hang_is_a_result() -> None:
    assert isolated(lambda: time.sleep(60), 0.2) == ("hang", "it did not return within 0.2 seconds")


def test_a_loop_is_a_hang() -> None:
    def loop() -> None:
        while True:
            pass

    assert isolated(loop, 0.3)[0] == "hang"


def test_a_child_of_the_child_does_not_keep_it_waiting() -> None:
    def fork() -> None:
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)

    started = time.monotonic()
    assert isolated(fork, 30)[0] == "crash"
    assert time.monotonic() - started < 30


def test_output_is_thrown_away(capfd: object) -> None:
    def talk() -> str:
        print("to stdout")
        print("to stderr", file=sys.stderr)
        os.write(1, b"below Python")
        return "said"

    assert isolated(talk) == ("done", "said")
    assert capfd.readouterr() == ("", "")  # type: ignore[attr-defined]


def test_isolated_limits_the_memory() -> None:
    def much() -> str:
        try:
            bytearray(1 << 42)
        except MemoryError:
            return "refused"
        return "taken"

    assert isolated(much) == ("done", "refused")
