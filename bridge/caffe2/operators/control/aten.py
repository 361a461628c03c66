# SPDX-License-Identifier: Apache-2.0
"""ATen: any function of torch, by its name.

Follows caffe2/contrib/aten, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.torch_operator import TorchOperator

_OWN = {"operator", "overload_name"}


@register_operator("ATen", ("cpu", "cuda"), inputs="0-*", outputs="0-*")
class ATen(TorchOperator):
    """Call the function `operator` of ATen, of `overload_name` if that is given.

    The inputs are its tensors, in their order, and the other arguments of the operator those of
    their names. Raises EnforceNotMet: torch has no such function of these tensors and arguments.
    """

    def RunOnDevice(self) -> None:
        name = self.GetSingleArgument("operator", "")
        given = {
            argument: self._value(argument)
            for argument in self._definition.arguments
            if argument not in _OWN
        }
        packet = getattr(torch.ops.aten, name, None) if name else None
        tensors = [self.x(i) for i in range(self.InputSize())]
        for overload in _overloads(packet, self.GetSingleArgument("overload_name", "")):
            called = _arguments(overload._schema, tensors, given)
            if called is not None:
                results = overload(*called[0], **called[1])
                break
        else:
            raise EnforceNotMet(
                f"ATen has no function {name!r} of {len(tensors)} tensors and the arguments "
                f"{sorted(given)}.",
                "ATen",
            )
        if not isinstance(results, (tuple, list)):
            results = [results]
        for o, result in enumerate(results[: self.OutputSize()]):
            if not isinstance(result, torch.Tensor):
                result = torch.tensor(result, device="cpu")
            self.put(o, result.clone())

    def _value(self, name: str) -> Any:
        values = self._definition.arguments[name]
        if set(values) & {"i", "f", "s", "n"}:
            return self.GetSingleArgument(name)
        return self.GetRepeatedArgument(name)


def _overloads(packet: Any, wanted: str) -> Iterator[Any]:
    """Yield the functions of a name that write no tensor given to them, the simplest first."""
    names = [] if packet is None else packet.overloads()
    for name in sorted(names, key=lambda one: one.startswith("Scalar")):
        overload = getattr(packet, name)
        if wanted and name != wanted:
            continue
        if not any(
            one.alias_info and one.alias_info.is_write for one in overload._schema.arguments
        ):
            yield overload


def _arguments(
    schema: Any, tensors: list[Any], given: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """Return the arguments for a function of this schema; None if these are not its arguments."""
    left, called = list(tensors), {}
    unused = set(given)
    for place, argument in enumerate(schema.arguments):
        kind = str(argument.type)
        if argument.name in given and "Tensor" not in kind:
            called[argument.name] = _as_kind(given[argument.name], kind)
            unused.discard(argument.name)
        elif kind in ("Tensor", "Optional[Tensor]") and left:
            called[argument.name] = left.pop(0)
        elif kind in ("List[Tensor]", "List[Optional[Tensor]]"):
            rest = [one for one in schema.arguments[place + 1 :] if str(one.type) == "Tensor"]
            count = max(len(left) - len(rest), 0)
            called[argument.name], left = left[:count], left[count:]
        elif not argument.has_default_value():
            return None
    return None if left or unused else ([], called)


def _as_kind(value: Any, kind: str) -> Any:
    if kind in ("bool", "Optional[bool]"):
        return bool(value)
    if kind in ("float", "Optional[float]"):
        return float(value)
    if kind.startswith("List") and not isinstance(value, list):
        return [value]
    return value
