# SPDX-License-Identifier: Apache-2.0
"""Packages that offer an adapter, by an entry point of the group ``bridge.adapters``.

An entry point is a callable without arguments that calls `bridge.register`. It is called when its
name is asked for, or when an object of a class of its package is first met: of the package that it
is named after, or of the one that it is defined in. Before an object is refused, all are called.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["call_all", "call_named", "call_of_package", "names"]

_GROUP = "bridge.adapters"
_called: set[tuple[str, str]] = set()
_found: list[EntryPoint] = []
_found_in: list[str] | None = None


def _entry_points(rescan: bool = False) -> list[EntryPoint]:
    """Return the entry points; looks for them again if `sys.path` changed."""
    global _found, _found_in
    if rescan or _found_in != sys.path:
        from importlib.metadata import entry_points

        _found = list(entry_points(group=_GROUP))
        _found_in = list(sys.path)
    return _found


def names() -> list[str]:
    """Return the names of all entry points."""
    return [found.name for found in _entry_points(rescan=True)]


def call_named(name: str) -> bool:
    """Call the entry points of this name that were not called yet; return whether there were any.

    Raises ImportError: one fails.
    """
    return _call([found for found in _entry_points(rescan=True) if found.name == name])


def call_of_package(package: str) -> bool:
    """Call the entry points of a package that were not called yet, as `call_named`."""
    return _call(
        [
            found
            for found in _entry_points()
            if package in (found.name.partition(".")[0], found.value.partition(".")[0])
        ]
    )


def call_all() -> bool:
    """Call all entry points that were not called yet; return whether there were any.

    Warns of those that fail: they need not concern the object that is about to be refused.
    """
    called = False
    for found in _entry_points(rescan=True):
        try:
            called = _call([found]) or called
        except ImportError as error:
            from warnings import warn

            warn(str(error), RuntimeWarning, stacklevel=2)
    return called


def _call(entry_points: list[EntryPoint]) -> bool:
    called = False
    for found in entry_points:
        key = (found.name, found.value)
        if key in _called:
            continue
        _called.add(key)
        try:
            found.load()()
        except Exception as error:
            _called.discard(key)
            raise ImportError(
                f"The entry point {found.name} = {found.value} of the group {_GROUP} fails: "
                f"{type(error).__name__}: {error}"
            ) from error
        called = True
    return called
