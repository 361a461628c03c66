# SPDX-License-Identifier: Apache-2.0
"""Which engines operators prefer that name none.

Follows SetEnginePref and its kin, caffe2/core/operator.cc, PyTorch 1.8.1, whose Python takes no
preferences but empty ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.c10.errors import EnforceKeyError, EnforceTypeError, EnforceValueError
from bridge.caffe2.base.device_option import device_kind
from bridge.caffe2.definitions.operator_types import is_registered
from bridge.caffe2.execution.registry import preferred, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["SetEnginePref", "SetGlobalEnginePref", "SetOpEnginePref", "SetPerOpEnginePref"]


def SetEnginePref(
    per_op_engine_pref: dict[int, dict[str, list[str]]], global_engine_pref: dict[int, list[str]]
) -> None:
    """Set the engines that operators prefer, by type and for all types, in place of those before.

    By Caffe2's number of the device's type: engines by operator type, first the one to take first;
    and the engines for all operators. An engine that an operator is not registered with is passed
    over.

    Raises EnforceNotMet: no such mappings, an operator type that there is not, a number that is no
    device's. The preferences are then what they were.
    """
    by_type = _per_op(per_op_engine_pref, "SetEnginePref")
    everywhere = _for_all(global_engine_pref, "SetEnginePref")
    preferred.by_type, preferred.everywhere = by_type, everywhere
    registry.generation += 1


def SetGlobalEnginePref(global_engine_pref: dict[int, list[str]]) -> None:
    """Set the engines that all operators prefer; see `SetEnginePref`."""
    preferred.everywhere = _for_all(global_engine_pref, "SetGlobalEnginePref")
    registry.generation += 1


def SetPerOpEnginePref(per_op_engine_pref: dict[int, dict[str, list[str]]]) -> None:
    """Set the engines that operators of some types prefer; see `SetEnginePref`."""
    preferred.by_type = _per_op(per_op_engine_pref, "SetPerOpEnginePref")
    registry.generation += 1


def SetOpEnginePref(op_type: str, op_pref: dict[int, list[str]]) -> None:
    """Set the engines that operators of one type prefer, by device; see `SetEnginePref`."""
    caller = "SetOpEnginePref"
    wanted = _for_all(op_pref, caller)
    _check_type(op_type, caller)
    preferred.by_type.update({(kind, op_type): engines for kind, engines in wanted.items()})
    registry.generation += 1


def _per_op(given: Any, caller: str) -> dict[tuple[str, str], list[str]]:
    found = {}
    for kind, types in _by_kind(given, caller):
        if not isinstance(types, dict):
            raise EnforceTypeError("Preferences by operator type are a dict.", caller)
        for op_type, engines in types.items():
            _check_type(op_type, caller)
            found[kind, op_type] = _names(engines, caller)
    return found


def _for_all(given: Any, caller: str) -> dict[str, list[str]]:
    return {kind: _names(engines, caller) for kind, engines in _by_kind(given, caller)}


def _by_kind(given: Any, caller: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(given, dict):
        raise EnforceTypeError("Preferences are a dict by type of device.", caller)
    for number, value in given.items():
        kind = device_kind(number) if isinstance(number, int) else None
        if kind is None:
            raise EnforceValueError(f"{number!r} is the number of no type of device.", caller)
        yield kind, value


def _names(engines: Any, caller: str) -> list[str]:
    if isinstance(engines, (list, tuple)) and all(isinstance(one, str) for one in engines):
        return list(engines)
    raise EnforceTypeError(f"Engines are a list of names, not {engines!r}.", caller)


def _check_type(op_type: Any, caller: str) -> None:
    if not isinstance(op_type, str) or not is_registered(op_type):
        raise EnforceKeyError(f"There are no operators of type {op_type!r}.", caller)
