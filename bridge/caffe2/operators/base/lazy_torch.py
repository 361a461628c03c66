# SPDX-License-Identifier: Apache-2.0
"""torch, imported when the first operator runs, not when operators are registered."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["functional", "settle", "torch"]


class _Lazy:
    """A stand-in for a module, imported at the first access to an attribute.

    Then the modules of operators refer to the real one, which torch's compiler can trace.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        import importlib

        settle()
        value = getattr(importlib.import_module(self.__name__), attribute)
        setattr(self, attribute, value)
        return value


torch: Any = _Lazy("torch")
"""The module `torch`."""

functional: Any = _Lazy("torch.nn.functional")
"""The module `torch.nn.functional`."""


def settle() -> None:
    """Import torch, and let the modules of operators that are loaded refer to it itself."""
    import importlib
    import sys

    package = __name__.partition(".base.")[0] + "."
    for name, module in list(sys.modules.items()):
        if not name.startswith(package):
            continue
        for value_name, value in list(vars(module).items()):
            if isinstance(value, _Lazy):
                setattr(module, value_name, importlib.import_module(value.__name__))
