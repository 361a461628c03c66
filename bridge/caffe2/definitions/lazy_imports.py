# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.lazy``: functions to call when operators are first asked for."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["RegisterLazyImport", "TriggerLazyImport"]

_waiting: list[Callable[[], object]] = []


def RegisterLazyImport(lazy: Callable[[], object]) -> None:
    """Register a function, which each `TriggerLazyImport` calls."""
    _waiting.append(lazy)


def TriggerLazyImport() -> None:
    """Call the registered functions, as `core.RefreshRegisteredOperators` does."""
    for lazy in _waiting:
        lazy()
