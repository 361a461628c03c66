# SPDX-License-Identifier: Apache-2.0
"""Which class runs an operator of a type, on a device, with an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set

from bridge.c10 import Device
from bridge.c10.errors import EnforceKeyError, EnforceTypeError, EnforceValueError
from bridge.caffe2.execution.operator import Operator, assign
from bridge.caffe2.execution.operator_def import Definition

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any, TypeVar

    OperatorClass = TypeVar("OperatorClass", bound=type[Operator])

__all__ = [
    "IsOperator",
    "IsOperatorWithEngine",
    "RefreshRegisteredOperators",
    "RegisteredOperators",
    "RegisteredTypes",
    "class_for",
    "is_registered",
    "nearby_names",
    "preferred",
    "register_operator",
    "registry",
    "registry_key",
]

# The classes by operator type (with the engine in it) and name of the device type.
_classes: dict[str, dict[str, type[Operator]]] = {}
_built_in_loaded = False


class _Registry:
    """Counts registrations: a definition looks its class up again where there were more since."""

    generation = 1


registry = _Registry()


class _Preferred:
    """The engines that operators prefer that name none; see `engines`."""

    def __init__(self) -> None:
        # By name of the device's type and operator type, and by name of the device's type.
        self.by_type: dict[tuple[str, str], list[str]] = {}
        self.everywhere: dict[str, list[str]] = {}

    def engines(self, kind: str, op_type: str) -> list[str]:
        """List them, first the one to take first."""
        return self.by_type.get((kind, op_type), []) + self.everywhere.get(kind, [])


preferred = _Preferred()


class RegisteredTypes(Set[str]):
    """The types of operators that there are, as `RegisteredOperators` lists them: a live set."""

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and _find(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(RegisteredOperators())

    def __len__(self) -> int:
        return len(RegisteredOperators())


def registry_key(op_type: str, engine: str = "") -> str:
    """Give the name under which an operator with an engine of its own is registered."""
    if engine in ("", "DEFAULT"):
        return op_type
    return f"{op_type}_ENGINE_{engine}"


def register_operator(
    name: str, devices: Iterable[str] = ("cpu",), engine: str = ""
) -> Callable[[OperatorClass], OperatorClass]:
    """Register the decorated class as what runs operators of type `name` on these device types.

    Gives the class back. With `engine`, for operators that ask for that engine; an operator that
    asks for one that is not registered runs without.

    Raises EnforceNotMet, also a TypeError or ValueError: the class is no Operator, `name` no
    name, a device none, or another class has the name. The same class of the same module may come
    again, as when a notebook's cell runs again; it takes the place of the earlier one.

    >>> import numpy as np
    >>> from bridge import caffe2
    >>> from bridge.caffe2 import core, workspace
    >>> @caffe2.register_operator("Thrice")
    ... class Thrice(caffe2.Operator):
    ...     def RunOnDevice(self):
    ...         x = self.Input(0)
    ...         self.Output(0, x.sizes(), x.dtype()).numpy()[...] = 3 * x.numpy()
    >>> workspace.FeedBlob("x", np.array([1.0, 2.0]))
    True
    >>> workspace.RunOperatorOnce(core.CreateOperator("Thrice", ["x"], ["y"]))
    True
    >>> workspace.FetchBlob("y").tolist()
    [3.0, 6.0]
    >>> workspace.ResetWorkspace()
    True
    """
    caller = "register_operator"
    if type(name) is not str or not name:
        raise EnforceTypeError(f"{name!r} is no name of an operator.", "", caller)
    types = [devices] if isinstance(devices, str) else list(devices)
    kinds = [_device_kind(device, caller) for device in types]
    if not kinds:
        raise EnforceValueError("An operator is registered for one device or more.", "", caller)
    key = registry_key(name, engine)

    def register(cls: OperatorClass) -> OperatorClass:
        given: Any = cls
        if not (isinstance(given, type) and issubclass(given, Operator)):
            raise EnforceTypeError(f"{cls!r} is no class derived from caffe2.Operator.", "", caller)
        known = _classes.setdefault(key, {})
        for kind in kinds:
            other = known.get(kind)
            if other is not None and not _is_again(cls, other):
                raise EnforceValueError(
                    f"Operator {key!r} is registered for {kind} by {other.__module__}."
                    f"{other.__qualname__} already; give yours another name.",
                    "",
                    caller,
                )
        for kind in kinds:
            known[kind] = cls
        registry.generation += 1
        return cls

    return register


def _is_again(cls: type, other: type) -> bool:
    return (cls.__module__, cls.__qualname__) == (other.__module__, other.__qualname__)


def _device_kind(device: Any, caller: str) -> str:
    try:
        return Device(device).type.name.lower()
    except (TypeError, ValueError) as cause:
        raise EnforceValueError(
            f"{device!r} names no type of device. Give 'cpu', 'cuda' or another of c10.DeviceType.",
            "",
            caller,
        ) from cause


def RegisteredOperators() -> list[str]:
    """List the types of operators that there are, sorted; one with an engine is TYPE_ENGINE_NAME.

    The first call loads the built-in ones.
    """
    _load_built_in()
    return sorted(_classes)


def is_registered(op_type: str, engine: str = "") -> bool:
    """Say whether there are operators of that type, with that engine if one is given."""
    return _find(registry_key(op_type, engine)) is not None


def IsOperator(op_type: str) -> bool:
    """Say whether there are operators of that type."""
    return is_registered(op_type)


def IsOperatorWithEngine(op_type: str, engine: str) -> bool:
    """Say whether there are operators of that type that are made for that engine."""
    return is_registered(op_type, engine)


def RefreshRegisteredOperators(trigger_lazy: bool = True) -> None:
    """Load the built-in operators; what is registered later is seen in any case."""
    if trigger_lazy:
        _load_built_in()


def nearby_names(op_type: str) -> list[str]:
    """List types of operators with a name like that."""
    import difflib

    return difflib.get_close_matches(op_type, RegisteredOperators(), 3)


def class_for(definition: Definition, caller: str) -> type[Operator]:
    """Find the class that runs an operator.

    Raises EnforceNotMet: none of that type (also a KeyError), or none for its device.
    """
    if definition.generation != registry.generation:
        assign(definition, _looked_up(definition, caller), registry.generation)
    found: type[Operator] = definition.cls
    return found


def _looked_up(definition: Definition, caller: str) -> type[Operator]:
    by_device = None
    wanted = definition.engine.split(",") if definition.engine else []
    for engine in wanted + preferred.engines(definition.kind, definition.type):
        found = _find(registry_key(definition.type, engine))
        by_device = by_device or (found if found and definition.kind in found else None)
    by_device = by_device or _find(definition.type)
    if by_device is None:
        near = nearby_names(definition.type)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise EnforceKeyError(
            f"There are no operators of type {definition.type!r}.{hint} "
            "RegisteredOperators() lists what there is, register_operator adds to it.",
            "",
            caller,
        )
    kind = definition.kind
    cls = by_device.get(kind)
    if cls is None:
        raise EnforceValueError(
            f"Operator {definition.type!r} runs on {' and '.join(sorted(by_device))}, not on "
            f"{kind}.",
            "",
            caller,
        )
    return cls


def _find(key: str) -> dict[str, type[Operator]] | None:
    found = _classes.get(key)
    if found is None:
        _load_built_in()
        found = _classes.get(key)
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
