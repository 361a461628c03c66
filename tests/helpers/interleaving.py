# SPDX-License-Identifier: Apache-2.0
"""Threads whose order is chosen by a seed: one runs at a time, and may change at each line.

A thread of `run` that traces passes on to another at lines of the package, where Python would
change threads by chance. Compiled code is one step, unless it calls Python. A lock that a waiting
thread holds would stop all: only calls that take none can be run so.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

_PART = "/bridge/"
CHANGES = 0.4  # of the lines: with more, few calls get far before the next


class Schedule:
    """Which of some threads runs, chosen by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._turns: list[threading.Semaphore] = []
        self._running: list[int] = []
        self._me = threading.local()

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run each task in a thread of its own; raise the first error of one."""
        errors: list[BaseException] = []
        self._running = list(range(len(tasks)))
        self._turns = [threading.Semaphore(0) for _ in tasks]

        def one(number: int, task: Callable[[], None]) -> None:
            self._me.number = number
            self._turns[number].acquire()
            sys.settrace(self._trace)
            try:
                task()
            except BaseException as error:  # noqa: BLE001 - raised by the thread that started it
                errors.append(error)
            finally:
                sys.settrace(None)
                self._running.remove(number)
                if self._running:
                    self._turns[self._random.choice(self._running)].release()

        threads = [
            threading.Thread(target=one, args=(number, task)) for number, task in enumerate(tasks)
        ]
        for thread in threads:
            thread.start()
        self._turns[self._random.choice(self._running)].release()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def pass_on(self) -> None:
        """Let a thread run that the seed chooses: this one, mostly, or another."""
        number = getattr(self._me, "number", None)
        if number is None or self._random.random() > CHANGES:
            return
        chosen = self._random.choice(self._running)
        if chosen != number:
            self._turns[chosen].release()
            self._turns[number].acquire()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if _PART not in frame.f_code.co_filename:
            return None
        self.pass_on()
        return self._trace
