# SPDX-License-Identifier: Apache-2.0
"""The gradient operators of an operator, by its type: built in, and registered by users."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError, EnforceTypeError
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.base.wrapped_errors import wrap_error
from bridge.caffe2.definitions.schemas import check_names
from bridge.caffe2.gradients.declared import declared_gradient
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

    # Takes an OperatorDef and the gradients of its outputs, each may be None. Returns an
    # OperatorDef, a list of them or None, and the gradients of the inputs.
    Maker = Callable[[Any, Sequence[Any]], tuple[Any, Sequence[Any]]]

_CALLER = "GradientRegistry.GetGradientForOp"


class OperatorGradients:
    """The base class of `GradientRegistry`: the gradient operators of a single operator."""

    gradient_registry_: ClassVar[dict[str, Maker]] = {}

    @classmethod
    def RegisterGradient(cls, op_type: str) -> Callable[[Maker], Maker]:
        """Return a decorator that registers a function as the gradient of an operator type.

        It is called as ``f(op, g_output)``. It returns the gradient operators, an OperatorDef or a
        list of them, and a list of the names of the gradients of the inputs, None for an input
        without a gradient. A built-in gradient of the type is tried first.

        The decorator raises EnforceNotMet, also a TypeError: its argument cannot be called.

        >>> from bridge.caffe2 import core
        >>> @core.GradientRegistry.RegisterGradient("TwiceForDocs")
        ... def twice(op, g_output):
        ...     gradient = op.input[0] + "_grad"
        ...     return core.CreateOperator("TwiceForDocs", g_output, [gradient]), [gradient]
        >>> op = core.CreateOperator("TwiceForDocs", ["x"], ["y"])
        >>> core.GradientRegistry.GetGradientForOp(op, ["y_grad"])[1]
        ['x_grad']
        """

        def register(function: Maker) -> Maker:
            if not callable(function):
                raise EnforceTypeError(
                    f"The gradient must be a function, not {type(function).__name__}.",
                    "GradientRegistry.RegisterGradient",
                )
            cls.gradient_registry_[op_type] = function
            return function

        return register

    @classmethod
    def GetGradientForOp(cls, op: Any, g_output: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the gradient operators of `op`, and the gradients of its inputs.

        g_output: for each output the name of its gradient, a `GradientSlice`, or None.

        Raises EnforceNotMet: the type has no gradient (also a KeyError), the gradient needs
        something that `op` lacks, or a registered function raised an error.
        """
        message = as_message(op, "OperatorDef", _CALLER)
        try:
            given = [_plain(one) for one in g_output]
        except TypeError as cause:
            raise wrap_error("g_output must be a list of names", _CALLER, cause) from cause
        if len(given) != len(message.output):
            raise EnforceTypeError(
                f"{len(given)} gradients are given for {len(message.output)} outputs.",
                _CALLER,
                condition="len(g_output) == len(op.output)",
            )
        try:
            gradient_ops, input_gradients = cls._gradient(message, given)
        except Exception as cause:
            raise wrap_error(
                f"Exception when creating gradient for [{message.type}]", _CALLER, cause
            ) from cause
        if gradient_ops is None:
            return [], list(input_gradients)
        return (gradient_ops if isinstance(gradient_ops, list) else [gradient_ops]), list(
            input_gradients
        )

    @classmethod
    def _gradient(cls, op: Any, given: list[Any]) -> tuple[Any, Sequence[Any]]:
        registered = cls.gradient_registry_.get(op.type)
        built_in = declared_gradient(op.type)
        if built_in is None:
            if registered is not None:
                return registered(op, given)
            raise EnforceKeyError(
                f"Operators of type {op.type!r} have no gradient. "
                "GradientRegistry.RegisterGradient adds one; a StopGradient after the operator "
                "makes it unnecessary.",
                _CALLER,
            )
        try:
            if registered is not None and getattr(built_in, "yields", False):
                return registered(op, given)
            maker = GradientMaker(op, given)
            check_names(op.type, op.input, op.output)
            built_in(maker)
        except Exception:
            if registered is None:
                raise
            return registered(op, given)
        return maker.gradient_ops, maker.input_gradients


def _plain(gradient: Any) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, tuple):
        return GradientSlice(*map(str, gradient))
    return str(gradient)
