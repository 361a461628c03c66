# SPDX-License-Identifier: Apache-2.0
"""The prefix of the names of new nets, from the builder whose `with` block a thread is in."""

from __future__ import annotations

import threading


class _Prefixes(threading.local):
    def __init__(self) -> None:
        self.open: list[str] = []


_prefixes = _Prefixes()


def current_prefix() -> str:
    """Return the prefix; an empty str where there is none."""
    return _prefixes.open[-1] if _prefixes.open else ""


def push_prefix(prefix: str) -> None:
    """Set the prefix until `pop_prefix`."""
    _prefixes.open.append(prefix)


def pop_prefix() -> None:
    """Set the prefix back to the one before the last `push_prefix`."""
    _prefixes.open.pop()
