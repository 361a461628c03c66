# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.lazy``: what is loaded when operators are first asked for."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["RegisterLazyImport", "TriggerLazyImport"]

_waiting: list[Callable[[], object]] = []


def RegisterLazyImport(lazy: Callable[[], object]) -> None:
    """Have `lazy` called by `TriggerLazyImport`, each time."""
    _waiting.append(lazy)


def TriggerLazyImport() -> None:
    """Call what was registered, as `core.RefreshRegisteredOperators` does."""
    for lazy in _waiting:
        lazy()
