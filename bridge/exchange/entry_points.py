# SPDX-License-Identifier: Apache-2.0
"""Packages that offer an adapter, by an entry point of the group ``bridge.adapters``.

An entry point is a callable without arguments that calls `bridge.register`. It is called when its
name is asked for, or when an object of a class of its package is first met: of the package that it
is named after, of the one that it is defined in, or of one that was installed with it. Before an
object is refused, all are called.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
    """Return the names of the entry points that may still register something."""
    return [
        found.name
        for found in _entry_points(rescan=True)
        if (found.name, found.value) not in _called
    ]


def call_named(name: str) -> bool:
    """Call the entry points of this name that were not called yet; return whether there were any.

    Raises ImportError: one fails.
    """
    return _call([found for found in _entry_points(rescan=True) if found.name == name])


def call_of_package(package: str) -> bool:
    """Call the entry points of a package that were not called yet, as `call_named`."""
    return _call([found for found in _entry_points() if package in _packages(found)])


def _packages(found: EntryPoint) -> set[str]:
    """Return the packages whose classes an entry point may be for."""
    packages = {found.name.partition(".")[0], found.value.partition(":")[0].partition(".")[0]}
    distribution = found.dist
    if distribution is not None:
        packages.add(distribution.name.replace("-", "_"))
        packages.update((distribution.read_text("top_level.txt") or "").split())
        for path in distribution.files or ():
            packages.add(path.parts[0].removesuffix(".py"))
    return packages


def call_all() -> tuple[bool, str]:
    """Call all entry points that were not called yet.

    Return whether one succeeded, and why others failed: they need not concern the object that is
    about to be refused.
    """
    called, failures = False, []
    for found in _entry_points(rescan=True):
        try:
            called = _call([found]) or called
        except ImportError as error:
            failures.append(str(error))
    return called, " ".join(failures)


def _call(entry_points: list[EntryPoint]) -> bool:
    called = False
    for found in entry_points:
        key = (found.name, found.value)
        if key in _called:
            continue
        _called.add(key)
        try:
            found.load()()
        except (Exception, SystemExit) as error:
            from bridge.exchange.refusal import reason_of

            _called.discard(key)
            raise ImportError(
                f"The entry point {found.name} = {found.value} of the group {_GROUP} fails: "
                f"{type(error).__name__}: {reason_of(error)}"
            ) from error
        called = True
    return called
