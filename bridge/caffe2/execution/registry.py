# SPDX-License-Identifier: Apache-2.0
"""The registry of operator classes, by operator type, device type and engine."""

from __future__ import annotations

from _thread import RLock
from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10 import Device, DeviceType
from bridge.c10.errors import EnforceKeyError, EnforceTypeError, EnforceValueError
from bridge.caffe2.definitions.operator_types import (
    built_in,
    classes,
    classes_of,
    load_built_in,
    nearby_names,
    preferred,
    registry,
    registry_key,
)
from bridge.caffe2.definitions.schemas import (
    check_gradient,
    declare_gradient,
    declare_schema,
    parse_schema,
)
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.operator import Operator, assign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from bridge.caffe2.execution.blob_table import BlobTable

    OperatorClass = TypeVar("OperatorClass", bound=type[Operator])


_registering = RLock()  # held from looking for a class to adding one


def register_operator(
    name: str,
    devices: Any = ("cpu",),
    engine: str = "",
    *,
    inputs: str | int | None = None,
    outputs: str | int | None = None,
    inplace: Any = None,
    gradient: Any = None,
) -> Callable[[OperatorClass], OperatorClass]:
    """Return a decorator that registers a class for operators of type `name`, and returns it.

    devices: one or more devices or device types, by any of their names. engine: only for operators
    that ask for it; an operator that asks for an engine that is not registered runs without.
    inputs, outputs: their numbers, such as 2, ``"1-3"`` or ``"1-*"``; given both, `core` and the
    operator check them. inplace, gradient: as in `operator`.

    Raises EnforceNotMet, also a TypeError or ValueError: the class is not an Operator, `name` or
    `engine` is not a name, a device is not one, or another class has the name. A class of the same
    module and name replaces the earlier one, as when a notebook's cell runs again. A class replaces
    a built-in operator only if it is registered before the first look-up of a built-in one.

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
        raise EnforceTypeError(f"{name!r} is not the name of an operator.", caller)
    if not isinstance(engine, str):
        raise EnforceTypeError(f"{engine!r} is not the name of an engine.", caller)
    kinds = _device_kinds(devices, caller)
    key = registry_key(name, engine)
    has_schema = inputs is not None and outputs is not None
    schema = parse_schema(inputs, outputs, inplace) if has_schema else None
    if gradient is not None:
        check_gradient(gradient)

    def register(cls: OperatorClass) -> OperatorClass:
        given: Any = cls
        if not (isinstance(given, type) and issubclass(given, Operator)):
            raise EnforceTypeError(f"{cls!r} is not a class derived from caffe2.Operator.", caller)
        is_built_in = _is_built_in(cls)
        if built_in.is_asked and not is_built_in:
            load_built_in(key)
        with _registering:
            known = classes.setdefault(key, {})
            free = []
            for kind in kinds:
                other = known.get(kind)
                if other is None or _is_again(cls, other):
                    free.append(kind)
                elif _is_built_in(other) or not is_built_in:
                    raise EnforceValueError(
                        f"Operator {key!r} is already registered for {kind} by {other.__module__}."
                        f"{other.__qualname__}; use another name.",
                        caller,
                    )
            if schema is not None:
                declare_schema(name, schema, is_built_in)
                cls._has_schema = True
            if gradient is not None:
                declare_gradient(name, gradient, is_built_in)
            known.update(dict.fromkeys(free, cls))
            if not is_built_in:
                registry.generation += 1
        return cls

    return register


def _is_again(cls: type, other: type) -> bool:
    return (cls.__module__, cls.__qualname__) == (other.__module__, other.__qualname__)


def _is_built_in(cls: type) -> bool:
    return cls.__module__.startswith("bridge.caffe2.")


def _device_kinds(devices: Any, caller: str) -> list[str]:
    """Return the names of the types of the devices."""
    try:
        several = [devices] if isinstance(devices, (str, Device, DeviceType)) else list(devices)
        kinds = [Device(device).type.name.lower() for device in several]
    except (TypeError, ValueError) as cause:
        raise EnforceValueError(
            f"{devices!r} does not name a type of device. Use 'cpu', 'cuda' or another of "
            "c10.DeviceType.",
            caller,
        ) from cause
    if not kinds:
        raise EnforceValueError("An operator is registered for one or more devices.", caller)
    return kinds


def class_for(definition: Definition, caller: str) -> type[Operator]:
    """Return the class that runs an operator.

    Raises EnforceNotMet: there is no class for its type (also a KeyError), or for its device.
    """
    generation = registry.generation  # read first: another thread may register a class meanwhile
    if definition.generation != generation:
        assign(definition, _looked_up(definition, caller), generation)
    found: type[Operator] = definition.cls
    return found


def create_operator(definition: Definition, table: BlobTable, caller: str) -> Operator:
    """Return the operator of a definition, new, on the blobs of `table`.

    Raises EnforceNotMet: as `class_for`, or from the class. TypeError: its ``__new__`` returns
    something else.
    """
    made: Any = class_for(definition, caller)(definition, table)
    if not isinstance(made, Operator):
        raise TypeError(
            f"{definition.cls.__qualname__}() returned {type(made).__name__}, not an Operator"
        )
    return made


def _looked_up(definition: Definition, caller: str) -> type[Operator]:
    by_device = None
    wanted = definition.engine.split(",") if definition.engine else []
    for engine in wanted + preferred.engines(definition.kind, definition.type):
        found = classes_of(registry_key(definition.type, engine))
        by_device = by_device or (found if found and definition.kind in found else None)
    by_device = by_device or classes_of(definition.type)
    if by_device is None:
        near = nearby_names(definition.type)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise EnforceKeyError(
            f"There are no operators of type {definition.type!r}.{hint} "
            "RegisteredOperators() lists the types, register_operator adds one.",
            caller,
        )
    kind = definition.kind
    cls = by_device.get(kind)
    if cls is None:
        raise EnforceValueError(
            f"Operator {definition.type!r} runs on {' and '.join(sorted(by_device))}, not on "
            f"{kind}.",
            caller,
        )
    if kind == "cuda":
        _require_gpu(definition, caller)
    return cls


def _require_gpu(definition: Definition, caller: str) -> None:
    """Raise EnforceNotMet, also a ValueError, unless the GPU of a definition is there."""
    from bridge.caffe2.base.hardware import NumCudaDevices  # imports torch

    count = NumCudaDevices()
    if definition.device.index >= count:
        found = f"{count} CUDA devices, numbered from 0" if count else "no CUDA device here"
        raise EnforceValueError(
            f"Operator {definition.type!r} is to run on {definition.device}, and torch sees "
            f"{found}. Leave the device option out to run it on the CPU.",
            caller,
        )
