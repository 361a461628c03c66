# SPDX-License-Identifier: Apache-2.0
"""The preferred engines of operators that name no engine.

Follows SetEnginePref and its kin, caffe2/core/operator.cc, PyTorch 1.8.1. From Python, Caffe2
itself accepts empty preferences only.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError, EnforceTypeError, EnforceValueError
from bridge.caffe2.base.device_option import device_kind
from bridge.caffe2.definitions.operator_types import is_registered, preferred, registry


def SetEnginePref(
    per_op_engine_pref: dict[int, dict[str, list[str]]], global_engine_pref: dict[int, list[str]]
) -> None:
    """Replace the preferred engines, of single operator types and of all types.

    per_op_engine_pref: by Caffe2's number of a device type, the engines of operator types, to be
    tried in order. global_engine_pref: by that number, the engines of all operators. Engines that
    an operator type is not registered for are skipped.

    Raises EnforceNotMet: not such mappings, an unknown operator type, a number that is not that of
    a device type. The preferences are then unchanged.
    """
    by_type = _per_op(per_op_engine_pref, "SetEnginePref")
    everywhere = _for_all(global_engine_pref, "SetEnginePref")
    preferred.by_type, preferred.everywhere = by_type, everywhere
    registry.generation += 1


def SetGlobalEnginePref(global_engine_pref: dict[int, list[str]]) -> None:
    """Replace the preferred engines of all operators; see `SetEnginePref`."""
    preferred.everywhere = _for_all(global_engine_pref, "SetGlobalEnginePref")
    registry.generation += 1


def SetPerOpEnginePref(per_op_engine_pref: dict[int, dict[str, list[str]]]) -> None:
    """Replace the preferred engines of single operator types; see `SetEnginePref`."""
    preferred.by_type = _per_op(per_op_engine_pref, "SetPerOpEnginePref")
    registry.generation += 1


def SetOpEnginePref(op_type: str, op_pref: dict[int, list[str]]) -> None:
    """Set the preferred engines of one operator type, by device type; see `SetEnginePref`."""
    caller = "SetOpEnginePref"
    wanted = _for_all(op_pref, caller)
    _check_type(op_type, caller)
    preferred.by_type.update({(kind, op_type): engines for kind, engines in wanted.items()})
    registry.generation += 1


def _per_op(preferences: Any, caller: str) -> dict[tuple[str, str], list[str]]:
    found = {}
    for kind, types in _by_kind(preferences, caller):
        if not isinstance(types, dict):
            raise EnforceTypeError("Preferences by operator type are a dict.", caller)
        for op_type, engines in types.items():
            _check_type(op_type, caller)
            found[kind, op_type] = _names(engines, caller)
    return found


def _for_all(preferences: Any, caller: str) -> dict[str, list[str]]:
    return {kind: _names(engines, caller) for kind, engines in _by_kind(preferences, caller)}


def _by_kind(preferences: Any, caller: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(preferences, dict):
        raise EnforceTypeError("Preferences are a dict by device type.", caller)
    for number, value in preferences.items():
        kind = device_kind(number) if isinstance(number, int) else None
        if kind is None:
            raise EnforceValueError(f"{number!r} is not the number of a device type.", caller)
        yield kind, value


def _names(engines: Any, caller: str) -> list[str]:
    if isinstance(engines, (list, tuple)) and all(isinstance(one, str) for one in engines):
        return list(engines)
    raise EnforceTypeError(f"Engines are a list of names, not {engines!r}.", caller)


def _check_type(op_type: Any, caller: str) -> None:
    if not isinstance(op_type, str) or not is_registered(op_type):
        raise EnforceKeyError(f"There are no operators of type {op_type!r}.", caller)
