# SPDX-License-Identifier: Apache-2.0
"""Which types of operators there are.

The table that `execution.registry` keeps, for whoever needs the names alone, as nets do, which have
a method for each. The built-in operators are loaded when one is looked for that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.execution.operator import Operator

__all__ = [
    "IsOperator",
    "IsOperatorWithEngine",
    "RefreshRegisteredOperators",
    "RegisteredOperators",
    "RegisteredTypes",
    "classes",
    "classes_of",
    "is_registered",
    "nearby_names",
    "registry_key",
]

# The classes by operator type (with the engine in it) and name of the device type.
classes: dict[str, dict[str, type[Operator]]] = {}
_built_in_loaded = False


class RegisteredTypes(Set[str]):
    """The types of operators that there are, as `RegisteredOperators` lists them: a live set."""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and classes_of(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(RegisteredOperators())

    def __len__(self) -> int:
        return len(RegisteredOperators())


def registry_key(op_type: str, engine: str = "") -> str:
    """Return the name under which an operator with an engine of its own is registered."""
    if engine in ("", "DEFAULT"):
        return op_type
    return f"{op_type}_ENGINE_{engine}"


def RegisteredOperators() -> list[str]:
    """List the types of operators that there are, sorted; one with an engine is TYPE_ENGINE_NAME.

    The first call loads the built-in ones.
    """
    _load_built_in()
    return sorted(classes)


def is_registered(op_type: str, engine: str = "") -> bool:
    """Return whether there are operators of that type, with that engine if one is given."""
    return classes_of(registry_key(op_type, engine)) is not None


def IsOperator(op_type: str) -> bool:
    """Return whether there are operators of that type."""
    return is_registered(op_type)


def IsOperatorWithEngine(op_type: str, engine: str) -> bool:
    """Return whether there are operators of that type that are made for that engine."""
    return is_registered(op_type, engine)


def RefreshRegisteredOperators(trigger_lazy: bool = True) -> None:
    """Load the built-in operators; what is registered later is seen in any case."""
    if trigger_lazy:
        _load_built_in()


def nearby_names(op_type: str) -> list[str]:
    """List types of operators with a name like that."""
    import difflib

    return difflib.get_close_matches(op_type, RegisteredOperators(), 3)


def classes_of(key: str) -> dict[str, type[Operator]] | None:
    """Return the classes registered under a name of `registry_key`, by device type; None: none."""
    found = classes.get(key)
    if found is None:
        _load_built_in()
        found = classes.get(key)
    return found


def _load_built_in() -> None:
    """Import the modules of built-in operators, each of which registers its own."""
    global _built_in_loaded
    if _built_in_loaded:
        return
    import importlib
    import pkgutil

    from bridge.caffe2 import operators

    importlib.import_module("bridge.caffe2.execution.python_operator")
    for module in pkgutil.walk_packages(operators.__path__, f"{operators.__name__}."):
        importlib.import_module(module.name)
    _built_in_loaded = True
