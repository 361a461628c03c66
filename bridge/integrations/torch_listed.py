# SPDX-License-Identifier: Apache-2.0
"""Operators of ``torch.ops._caffe2`` that PyTorch 1.8.1 had: its parameters, in their order.

So TorchScript files that call them run. Parameters without a default have one here, the
operator's; further inputs and arguments of the operator may follow by name. Outputs that are not
wanted are empty.
"""

from __future__ import annotations

import torch

from bridge.annotation import Any
from bridge.integrations.torch_schemas import SCHEMAS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # Runs an operator: its inputs, its arguments by name, and the number of its outputs.
    Run = Callable[[list[Any], dict[str, Any], int], list[Any]]

_PREALLOCATED = "_caffe2_preallocated_outputs"


class ListedOperator:
    """An operator with the schema of PyTorch 1.8.1, `schema`, as torch calls it.

    more_inputs, more: the names of inputs, and the types of arguments by name, that are not in that
    schema. run: computes the outputs.
    """

    def __init__(
        self, name: str, more_inputs: tuple[str, ...], more: dict[str, str], run: Run
    ) -> None:
        parsed: Any = torch._C.parse_schema(f"_caffe2::{SCHEMAS[name]}")
        self._run = run
        tensors = [one for one in parsed.arguments if "Tensor" in str(one.type)]
        others = [one for one in parsed.arguments if "Tensor" not in str(one.type)]
        self._inputs = [one.name for one in tensors]
        self._inputs += more_inputs[len(tensors) :]
        self._names = [one.name for one in parsed.arguments]
        returned = [str(one.type) for one in parsed.returns]
        self._is_list = "List[Tensor]" in returned
        self._count = len(returned)
        types = _types(SCHEMAS[name])
        parts = [f"{types[one.name]} {one.name}" for one in tensors]
        for one in others:
            kind = types[one.name].removesuffix("?")
            parts.append(f"{kind}? {one.name}=None")
        parts += [f"Tensor[]? {_PREALLOCATED}=None", "*"]
        parts += [f"Tensor? {extra}=None" for extra in more_inputs[len(tensors) :]]
        known = {*self._names, *more_inputs}
        parts += [f"{kind}? {extra}=None" for extra, kind in more.items() if extra not in known]
        if parts[-1] == "*":
            parts.pop()
        results = ", ".join(["Tensor"] * self._count)
        self.schema = f"{name}({', '.join(parts)}) -> " + (
            "Tensor[]" if self._is_list else f"({results})"
        )

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Return the output, or a tuple or list of them."""
        values = {**dict(zip([*self._names, _PREALLOCATED], given, strict=False)), **named}
        values.pop(_PREALLOCATED, None)
        inputs: list[Any] = []
        for name in self._inputs:
            value = values.pop(name, None)
            inputs += value if isinstance(value, (list, tuple)) else [value]
        while inputs and inputs[-1] is None:
            inputs.pop()
        arguments = {name: value for name, value in values.items() if value is not None}
        count = len(arguments.get("lengths", ())) if self._is_list else self._count
        found = self._run(inputs, arguments, self._wanted(count, arguments))
        found += [None] * (count - len(found))
        found = [inputs[0].new_empty(0) if one is None else one for one in found]
        if self._is_list:
            return found
        return found[0] if count == 1 else tuple(found)

    def _wanted(self, count: int, arguments: dict[str, Any]) -> int:
        """Return the number of outputs of the operator, without a mask that is not asked for."""
        has_mask = "return_presence_mask" in self._names
        return count - (has_mask and not arguments.get("return_presence_mask", False))


def _types(schema: str) -> dict[str, str]:
    """Return the types of the parameters of a schema by name, as they are written there."""
    inside = schema[schema.index("(") + 1 : schema.index(") ->")]
    pairs = (one.strip().partition("=")[0].split(" ") for one in inside.split(","))
    return {name: kind for kind, name in pairs}
