# SPDX-License-Identifier: Apache-2.0
"""torch, imported when the first operator runs, not when operators are registered."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["functional", "load", "torch"]


class _Lazy:
    """A stand-in for a module, imported at the first access to an attribute, which is cached."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        import importlib

        value = getattr(importlib.import_module(self.__name__), attribute)
        setattr(self, attribute, value)
        return value


torch: Any = _Lazy("torch")
"""The module `torch`."""

functional: Any = _Lazy("torch.nn.functional")
"""The module `torch.nn.functional`."""


def load() -> None:
    """Import the modules now, for torch.compile, which cannot trace an import."""
    import importlib

    for lazy in (torch, functional):
        found = vars(importlib.import_module(lazy.__name__))
        vars(lazy).update({name: value for name, value in found.items() if name[:2] != "__"})
