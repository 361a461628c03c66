# SPDX-License-Identifier: Apache-2.0
"""Names of a module that are imported from other modules at their first use."""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from collections.abc import Callable, Iterable

from bridge.annotation import Any

__all__ = ["lazily", "listed"]

# The threads that import something now. A child that is forked meanwhile would wait forever for a
# module that a thread of its parent is importing, so a fork waits instead, but not forever: the
# import may need something that the forking thread has.
_under_way: list[int] = []
_LONGEST_WAIT = 10.0  # seconds


def lazily(
    module: str, places: dict[str, str], now: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a module that has names from other modules.

    A module without ``__all__`` gets one of these names, but for those that begin with an
    underscore; tools/make_stubs.py writes a stub of the module from the table.

    places: the names, separated by spaces, for the full name of each module that defines them;
    ``a=b`` is the name `a` for `b`. A name that is the last part of its module's name is the module
    itself; so is ``C``, Caffe2's name of its extension module. now: names to import at once.
    """
    where: dict[str, tuple[str, str]] = {}
    for place, names in places.items():
        for one in names.split():
            name, _, original = one.partition("=")
            where[name] = place, original or name
    owner = sys.modules[module]
    vars(owner).setdefault("__all__", sorted(name for name in where if name[0] != "_"))

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, original = where[name]
        thread = get_ident()  # once: without memory, a second call would leave the first's behind
        _under_way.append(thread)
        try:
            __import__(place)
        finally:
            _under_way.remove(thread)
        found = sys.modules[place]
        is_module = original == "C" or place.endswith(f".{original}")
        value = found if is_module else getattr(found, original)
        setattr(owner, name, value)
        return value

    for name in now.split():
        get(name)
    return get, listed(module, where)


def listed(module: str, more: Iterable[str] = ()) -> Callable[[], list[str]]:
    """Return ``__dir__`` of a module: its ``__all__``, its special names, and `more`."""

    def names() -> list[str]:
        space = vars(sys.modules[module])
        return sorted({*space["__all__"], *more, *(name for name in space if name[:2] == "__")})

    return names


def _await_imports() -> None:
    """Wait until no other thread imports something that is first used."""
    end = time.monotonic() + _LONGEST_WAIT
    while any(thread != get_ident() for thread in list(_under_way)) and time.monotonic() < end:
        time.sleep(0.001)


def _forget_others() -> None:
    """Forget the threads that a forked child does not have."""
    _under_way[:] = [thread for thread in _under_way if thread == get_ident()]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_await_imports, after_in_child=_forget_others)
