# SPDX-License-Identifier: Apache-2.0
"""What makes the gradient operators of one operator: its blobs by number, and what was made."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions.arguments import MakeArgument, values_of
from bridge.caffe2.gradients.gradient_slice import GradientSlice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Gradient = str | GradientSlice | None

__all__ = ["GradientMaker"]

_CALLER = "GradientRegistry.GetGradientForOp"


class GradientMaker:
    """Makes gradient operators of `op`, from the gradients `given` of its outputs.

    The names are Caffe2's: I and O are inputs and outputs of the operator by number, GO the given
    gradient of an output, GI the gradient of an input. What is asked for as GI, or set, is what
    `wanted` has in the end; the others have none. Operators that are added get the operator's
    device, engine and arguments.

    Follows GradientMakerBase, caffe2/core/operator_gradient.h, PyTorch 1.8.1.
    """

    def __init__(self, op: Any, given: Sequence[Gradient]) -> None:
        self.op = op
        self.given = given
        self.made: list[Any] = []
        self.wanted: list[Gradient] = [None] * len(op.input)
        self._arguments: dict[str, dict[str, Any]] | None = None

    def I(self, i: int) -> str:  # noqa: E743
        """Return an input. Raises EnforceNotMet: there is none of that number."""
        self.enforce(i < len(self.op.input), f"needs an input {i}")
        return str(self.op.input[i])

    def O(self, i: int) -> str:  # noqa: E743
        """Return an output. Raises EnforceNotMet: there is none of that number."""
        self.enforce(i < len(self.op.output), f"needs an output {i}")
        return str(self.op.output[i])

    def GO(self, i: int) -> str:
        """Return the gradient of an output. Raises EnforceNotMet: it is sparse or missing."""
        output = self.O(i)
        given = self.given[i]
        self.enforce(given is not None, f"needs the gradient of output {output!r}, which has none")
        self.enforce(
            not isinstance(given, GradientSlice),
            f"needs a dense gradient of output {output!r}, which has a sparse one",
        )
        return str(given)

    def GI(self, i: int) -> str:
        """Name the gradient of an input, which is dense."""
        name = self.I(i) + "_grad"
        self.enforce(
            not isinstance(self.wanted[i], GradientSlice), f"has a sparse gradient of input {i}"
        )
        self.wanted[i] = name
        return name

    def GI_slice(self, i: int) -> GradientSlice:
        """Name indices and values of the gradient of an input, which is sparse."""
        name = self.I(i) + "_grad"
        found = GradientSlice(name + "_indices", name + "_values")
        self.wanted[i] = found
        return found

    def set_gradient(self, i: int, gradient: Gradient) -> None:
        """Have a blob that is there be the gradient of an input."""
        self.I(i)
        self.wanted[i] = gradient

    def argument(self, name: str, default: Any) -> Any:
        """Return an argument of the operator that is one value, of the type of `default`.

        Of any type where that is None. Raises EnforceNotMet: it is of another type.
        """
        values = self._read().get(name)
        if values is None:
            return default
        for field, kind in (("f", float), ("i", int), ("s", str)):
            if field in values and isinstance(default, (kind, type(None))):
                return values[field]
        raise self._refusal(f"needs a {type(default).__name__} as argument {name!r}")

    def ints(self, name: str) -> list[int]:
        """Return an argument of the operator that is a list of ints; empty where it has none."""
        return list(self._read().get(name, {}).get("ints", ()))

    def has_argument(self, name: str) -> bool:
        """Return whether the operator has the argument."""
        return name in self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        if self._arguments is None:
            self._arguments = values_of(self.op)
        return self._arguments

    def add(
        self,
        op_type: str,
        inputs: Iterable[str],
        outputs: Iterable[str],
        arguments: dict[str, Any] | None = None,
        copied: bool = True,
    ) -> Any:
        """Add an operator with `arguments`, and behind them those of the operator if `copied`."""
        made = caffe2_pb2().OperatorDef()
        made.type = op_type
        made.name = ""  # said, as Caffe2 does
        made.input.extend(inputs)
        made.output.extend(outputs)
        for name, value in (arguments or {}).items():
            made.arg.append(MakeArgument(name, value))
        if copied:
            made.arg.extend(self.op.arg)
        if self.op.HasField("device_option"):
            made.device_option.CopyFrom(self.op.device_option)
        if self.op.HasField("engine"):
            made.engine = self.op.engine
        made.is_gradient_op = True
        self.made.append(made)
        return made

    def enforce(self, condition: bool, what: str) -> None:
        """Raise EnforceNotMet that says what the gradient of this operator needs, unless so."""
        if not condition:
            raise self._refusal(what)

    def _refusal(self, what: str) -> EnforceNotMet:
        return EnforceNotMet(
            f"The gradient of operator {self.op.type!r} with inputs {list(self.op.input)} and "
            f"outputs {list(self.op.output)} {what}.",
            _CALLER,
        )
