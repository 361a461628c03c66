# SPDX-License-Identifier: Apache-2.0
"""The table of operator types, which `register_operator` fills.

It is kept apart from the classes that run operators, since nets need the names only: they have a
method for each type. The look-up of a built-in type that is not in the table loads its module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from bridge.annotation import Any

# The classes, by `registry_key` and by the name of the device type.
classes: dict[str, dict[str, type]] = {}


class _Registry:
    """Counts changes of the table: after each of them, definitions look up their class again."""

    generation = 1


registry = _Registry()


class _Preferred:
    """The preferred engines of operators that name no engine."""

    def __init__(self) -> None:
        # By device type and operator type, and by device type.
        self.by_type: dict[tuple[str, str], list[str]] = {}
        self.everywhere: dict[str, list[str]] = {}

    def engines(self, kind: str, op_type: str) -> list[str]:
        """Return the engines to try, in order."""
        return self.by_type.get((kind, op_type), []) + self.everywhere.get(kind, [])


preferred = _Preferred()


class _BuiltIn:
    """The package of the built-in operators, whose modules register them when they are loaded."""

    package = ""  # its name, which `bridge.caffe2` sets
    is_asked = False  # whether one was looked up

    def module(self) -> Any:
        """Return the package, which has `load` and `registry_keys`."""
        import importlib

        self.is_asked = True
        return importlib.import_module(self.package)


built_in = _BuiltIn()


class RegisteredTypes(Set[str]):
    """The registered types of operators: a live set of the names of `RegisteredOperators`."""

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

    The built-in ones are not loaded.

    >>> from bridge.caffe2 import workspace
    >>> {"Relu", "FC", "Python"} <= set(workspace.RegisteredOperators())
    True
    """
    return sorted({*classes, *built_in.module().registry_keys()})


def is_registered(op_type: str, engine: str = "") -> bool:
    """Return whether an operator type is registered, for an engine if one is named."""
    return classes_of(registry_key(op_type, engine)) is not None


# Caffe2's own tests, its other modules, and scripts use these names.
_REGISTERED_OPERATORS = RegisteredTypes()
_GetRegisteredOperators = RegisteredOperators


def IsOperator(op_type: str) -> bool:
    """Return whether an operator type is registered."""
    return is_registered(op_type)


def IsOperatorWithEngine(op_type: str, engine: str) -> bool:
    """Return whether an operator type is registered for that engine."""
    return is_registered(op_type, engine)


def RefreshRegisteredOperators(trigger_lazy: bool = True) -> None:
    """Load the libraries that wait for it, of `lazy_dyndep`, unless `trigger_lazy` is False."""
    if trigger_lazy:
        TriggerLazyImport()


def nearby_names(op_type: str) -> list[str]:
    """Return up to three types of operators whose names are similar."""
    import difflib

    return difflib.get_close_matches(op_type, RegisteredOperators(), 3)


def classes_of(key: str) -> dict[str, type] | None:
    """Return the classes of a `registry_key` by device type, or None if there are none."""
    found = classes.get(key)
    if found is None:
        load_built_in(key)
        found = classes.get(key)
    return found


def load_built_in(key: str) -> None:
    """Load the built-in operator of a `registry_key`, if there is one."""
    built_in.module().load(key)


__all__ = ["RegisterLazyImport", "TriggerLazyImport"]

_lazy_imports: list[Callable[[], object]] = []


def RegisterLazyImport(lazy: Callable[[], object]) -> None:
    """Register a function, which each `TriggerLazyImport` calls."""
    _lazy_imports.append(lazy)


def TriggerLazyImport() -> None:
    """Call the registered functions, as `core.RefreshRegisteredOperators` does."""
    for lazy in _lazy_imports:
        lazy()
