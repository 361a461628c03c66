# SPDX-License-Identifier: Apache-2.0
"""The table of operator types, which `register_operator` fills.

It is kept apart from the classes that run operators, since nets need the names only: they have a
method for each type. The first look-up of a type that is not in the table loads the built-in ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Set

__all__ = [
    "IsOperator",
    "IsOperatorWithEngine",
    "RefreshRegisteredOperators",
    "RegisteredOperators",
    "RegisteredTypes",
    "after_loading",
    "built_in_packages",
    "classes",
    "classes_of",
    "is_registered",
    "nearby_names",
    "registry_key",
]

# The classes, by `registry_key` and by the name of the device type.
classes: dict[str, dict[str, type]] = {}
# The packages whose modules register the built-in operators; `bridge.caffe2` names them.
built_in_packages: list[str] = []
# Called once these modules are imported.
after_loading: list[Callable[[], None]] = []


class RegisteredTypes(Set[str]):
    """The registered types of operators: a live set of what `RegisteredOperators` returns."""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and classes_of(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(RegisteredOperators())

    def __len__(self) -> int:
        return len(RegisteredOperators())


def registry_key(op_type: str, engine: str = "") -> str:
    """Return the key of an operator type in the table; one with an engine has a key of its own."""
    if engine in ("", "DEFAULT"):
        return op_type
    return f"{op_type}_ENGINE_{engine}"


def RegisteredOperators() -> list[str]:
    """Return the registered types of operators, sorted; with an engine, ``TYPE_ENGINE_NAME``.

    The first call loads the built-in ones.

    >>> from bridge.caffe2 import workspace
    >>> {"Relu", "FC", "Python"} <= set(workspace.RegisteredOperators())
    True
    """
    _load_built_in()
    return sorted(classes)


def is_registered(op_type: str, engine: str = "") -> bool:
    """Return whether an operator type is registered, for an engine if one is named."""
    return classes_of(registry_key(op_type, engine)) is not None


def IsOperator(op_type: str) -> bool:
    """Return whether an operator type is registered."""
    return is_registered(op_type)


def IsOperatorWithEngine(op_type: str, engine: str) -> bool:
    """Return whether an operator type is registered for that engine."""
    return is_registered(op_type, engine)


def RefreshRegisteredOperators(trigger_lazy: bool = True) -> None:
    """Load the built-in operators and libraries that wait for it, unless `trigger_lazy` is False.

    The libraries are those of ``caffe2.python.lazy_dyndep``, a module of an old PyTorch.
    """
    if trigger_lazy:
        _load_built_in()
        waiting = sys.modules.get("caffe2.python.lazy")
        if waiting is not None:
            waiting.TriggerLazyImport()


def nearby_names(op_type: str) -> list[str]:
    """Return up to three types of operators whose names are similar."""
    import difflib

    return difflib.get_close_matches(op_type, RegisteredOperators(), 3)


def classes_of(key: str) -> dict[str, type] | None:
    """Return the classes of a `registry_key` by device type, or None if there are none."""
    found = classes.get(key)
    if found is None:
        _load_built_in()
        found = classes.get(key)
    return found


def _load_built_in() -> None:
    """Import the modules of `built_in_packages`, each of which registers its operators."""
    if not built_in_packages:
        return
    import importlib
    import pkgutil

    for name in built_in_packages:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    for function in after_loading:
        function()
    built_in_packages.clear()
