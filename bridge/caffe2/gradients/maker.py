# SPDX-License-Identifier: Apache-2.0
"""GradientMaker: builds the gradient operators of one operator."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions.argument_values import MakeArgument, values_of
from bridge.caffe2.gradients.gradient_slice import GradientSlice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Gradient = str | GradientSlice | None

_CALLER = "GradientRegistry.GetGradientForOp"


class GradientMaker:
    """Builds the gradient operators of `op`, from the gradients of its outputs.

    The method names are Caffe2's: I(i) and O(i) return inputs and outputs of the operator, GO(i)
    the gradient of an output, GI(i) the gradient of an input. `gradient_ops` holds the added
    operators, which have the device, the engine and the arguments of `op`. `input_gradients` holds
    the gradient of each input that GI, GI_slice or set_gradient named, and None for the others.

    Follows GradientMakerBase, caffe2/core/operator_gradient.h, PyTorch 1.8.1.
    """

    def __init__(self, op: Any, output_gradients: Sequence[Gradient]) -> None:
        self.op = op
        self.output_gradients = output_gradients
        self.gradient_ops: list[Any] = []
        self.input_gradients: list[Gradient] = [None] * len(op.input)
        self._arguments: dict[str, dict[str, Any]] | None = None

    def I(self, i: int) -> str:  # noqa: E743
        """Return the name of input `i`. Raises EnforceNotMet: there are fewer inputs."""
        self.enforce(i < len(self.op.input), f"needs an input {i}")
        return str(self.op.input[i])

    def O(self, i: int) -> str:  # noqa: E743
        """Return the name of output `i`. Raises EnforceNotMet: there are fewer outputs."""
        self.enforce(i < len(self.op.output), f"needs an output {i}")
        return str(self.op.output[i])

    def GO(self, i: int) -> str:
        """Return the gradient of output `i`. Raises EnforceNotMet: it is sparse or missing."""
        output = self.O(i)
        gradient = self.output_gradients[i]
        self.enforce(
            gradient is not None, f"needs the gradient of output {output!r}, which is missing"
        )
        self.enforce(
            not isinstance(gradient, GradientSlice),
            f"needs a dense gradient of output {output!r}, not a sparse one",
        )
        return str(gradient)

    def GI(self, i: int) -> str:
        """Return a name for the gradient of input `i`, and record it as dense.

        Raises EnforceNotMet: it was recorded as sparse.
        """
        name = self.I(i) + "_grad"
        self.enforce(
            not isinstance(self.input_gradients[i], GradientSlice),
            f"has a sparse gradient of input {i}",
        )
        self.input_gradients[i] = name
        return name

    def GI_slice(self, i: int) -> GradientSlice:
        """Return names for the gradient of input `i`, and record it as sparse."""
        name = self.I(i) + "_grad"
        gradient = GradientSlice(name + "_indices", name + "_values")
        self.input_gradients[i] = gradient
        return gradient

    def set_gradient(self, i: int, gradient: Gradient) -> None:
        """Record an existing blob as the gradient of input `i`, or None for no gradient."""
        self.I(i)
        self.input_gradients[i] = gradient

    def argument(self, name: str, default: Any) -> Any:
        """Return the value of an argument, or `default` if the operator does not have it.

        Raises EnforceNotMet: the value has another type than `default`, unless that is None.
        """
        values = self._read().get(name)
        if values is None:
            return default
        for field, kind in (("f", float), ("i", int), ("s", str)):
            if field in values and isinstance(default, (kind, type(None))):
                return values[field]
        raise self._error(f"needs a {type(default).__name__} as argument {name!r}")

    def ints(self, name: str) -> list[int]:
        """Return the ints of an argument; an empty list if the operator does not have it."""
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
        """Add an operator with `arguments`, and the arguments of `op` if `copied`; return it."""
        operator = caffe2_pb2().OperatorDef()
        operator.type = op_type
        operator.name = ""  # set, as in Caffe2's messages
        operator.input.extend(inputs)
        operator.output.extend(outputs)
        for name, value in (arguments or {}).items():
            operator.arg.append(MakeArgument(name, value))
        if copied:
            operator.arg.extend(self.op.arg)
        if self.op.HasField("device_option"):
            operator.device_option.CopyFrom(self.op.device_option)
        if self.op.HasField("engine"):
            operator.engine = self.op.engine
        operator.is_gradient_op = True
        self.gradient_ops.append(operator)
        return operator

    def enforce(self, condition: bool, what: str) -> None:
        """Raise EnforceNotMet, with `what` as the predicate, unless `condition` is true."""
        if not condition:
            raise self._error(what)

    def _error(self, what: str) -> EnforceNotMet:
        return EnforceNotMet(
            f"The gradient of operator {self.op.type!r} with inputs {list(self.op.input)} and "
            f"outputs {list(self.op.output)} {what}.",
            _CALLER,
        )
