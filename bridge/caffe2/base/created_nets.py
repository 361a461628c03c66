# SPDX-License-Identifier: Apache-2.0
"""created_net: finds nets of the current workspace for `core.Net`, which is below workspaces."""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any

_find: list[Callable[[str, str], Any]] = []


def find_created_by(find: Callable[[str, str], Any]) -> None:
    """Set the function that returns the created net of a name; the second argument is a caller."""
    _find[:] = [find]


def created_net(name: str, caller: str) -> Any:
    """Return the net of that name in the current workspace; raise the error of its function."""
    return _find[0](name, caller)
