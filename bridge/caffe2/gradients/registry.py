# SPDX-License-Identifier: Apache-2.0
"""Which gradient operators an operator asks for: the built-in ones, and what users register."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from bridge.c10.errors import EnforceKeyError, EnforceTypeError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.definitions.schemas import check_names
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.makers_of_products import MAKERS
from bridge.caffe2.gradients.patterns import carry_out
from bridge.caffe2.gradients.table import NO_GRADIENT, PATTERNS, REFUSED, UNWRITTEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    # Takes an OperatorDef and the gradients of its outputs, None where there are none; gives one
    # OperatorDef, a list of them or None, and the gradients of the inputs.
    Maker = Callable[[Any, Sequence[Any]], tuple[Any, Sequence[Any]]]

__all__ = ["GradientRegistry"]

_CALLER = "GradientRegistry.GetGradientForOp"


class GradientRegistry:
    """How the gradient operators of an operator are made, by its type.

    Those of Caffe2's own operators are there; `RegisterGradient` adds others.
    Follows GradientRegistry, caffe2/python/core.py, PyTorch 1.8.1.

    >>> from bridge.caffe2 import core
    >>> op = core.CreateOperator("Relu", ["x"], ["y"])
    >>> operators, gradients = core.GradientRegistry.GetGradientForOp(op, ["y_grad"])
    >>> operators[0].type, list(operators[0].input), gradients
    ('ReluGradient', ['y', 'y_grad'], ['x_grad'])
    """

    gradient_registry_: ClassVar[dict[str, Maker]] = {}

    @classmethod
    def RegisterGradient(cls, op_type: str) -> Callable[[Maker], Maker]:
        """Have the decorated function make the gradients of operators of that type.

        It is called as ``f(op, g_output)`` and gives gradient operators, an OperatorDef or a list
        of them, and a list of names: the gradients of the inputs, None where there are none. It is
        asked where there are no built-in gradients, or where they cannot be made.

        Raises EnforceNotMet, also a TypeError: what is decorated cannot be called.

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
                    f"A gradient is registered as a function, not {type(function).__name__}.",
                    "GradientRegistry.RegisterGradient",
                )
            cls.gradient_registry_[op_type] = function
            return function

        return register

    @classmethod
    def GetGradientForOp(cls, op: Any, g_output: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Make the gradient operators of `op`; return them and the gradients of its inputs.

        g_output: for each output the name of its gradient, a `GradientSlice`, or None.

        Raises EnforceNotMet, also a KeyError or what the function that was registered raised: there
        is no gradient of such an operator, or it needs what is not there.
        """
        message = as_message(op, "OperatorDef", _CALLER)
        try:
            given = [_plain(one) for one in g_output]
        except TypeError as cause:
            raise wrap_error("g_output is a list of names", _CALLER, cause) from cause
        if len(given) != len(message.output):
            raise EnforceTypeError(
                f"{len(given)} gradients are given for the {len(message.output)} outputs.",
                _CALLER,
                condition="len(g_output) == len(op.output)",
            )
        try:
            made, wanted = cls._made(message, given)
        except Exception as cause:
            raise wrap_error(
                f"Exception when creating gradient for [{message.type}]", _CALLER, cause
            ) from cause
        if made is None:
            return [], list(wanted)
        return (made if isinstance(made, list) else [made]), list(wanted)

    @classmethod
    def _made(cls, op: Any, given: list[Any]) -> tuple[Any, Sequence[Any]]:
        registered = cls.gradient_registry_.get(op.type)
        built_in = _built_in().get(op.type)
        if built_in is None:
            if registered is not None:
                return registered(op, given)
            raise EnforceKeyError(
                f"Operators of type {op.type!r} have no gradient here. "
                "GradientRegistry.RegisterGradient adds one; StopGradient ends the gradients "
                "before it.",
                _CALLER,
            )
        try:
            maker = GradientMaker(op, given)
            check_names(op.type, op.input, op.output)
            built_in(maker)
        except Exception:
            if registered is None:
                raise
            return registered(op, given)
        return maker.made, maker.wanted

    @classmethod
    def GetBackwardPass(
        cls, operators: Iterable[Any], ys: Any, ys_generate_gradient: bool = False
    ) -> tuple[list[Any], dict[Any, Any]]:
        """Make the operators that compute the gradients of `ys` backwards through `operators`.

        ys: blobs whose gradients are one, or a dict of blobs and the names of their gradients.
        Gives the operators, in order, and by blob the name of its gradient or a `GradientSlice`.

        Raises EnforceNotMet: as `GetGradientForOp`; also a TypeError: `ys` is neither; where a
        gradient needs a blob that another operator wrote to in between.
        """
        from bridge.caffe2.gradients.backward_pass import IR

        return IR(operators).GetBackwardPass(ys)


def _plain(gradient: Any) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, tuple):
        return GradientSlice(*map(str, gradient))
    return str(gradient)


@functools.cache
def _built_in() -> dict[str, Callable[[GradientMaker], None]]:
    makers: dict[str, Callable[[GradientMaker], None]] = dict(MAKERS)
    for pattern, types in PATTERNS.items():
        makers.update(dict.fromkeys(types.split(), functools.partial(carry_out, pattern)))
    makers.update(dict.fromkeys(NO_GRADIENT.split(), _nothing))
    makers.update(dict.fromkeys(REFUSED.split(), _refused))
    makers.update(dict.fromkeys(UNWRITTEN.split(), _unwritten))
    return makers


def _nothing(maker: GradientMaker) -> None:
    pass


def _refused(maker: GradientMaker) -> None:
    maker.enforce(False, "should not be asked for; StopGradient before it ends the gradients")


def _unwritten(maker: GradientMaker) -> None:
    maker.enforce(False, "was never written, in Caffe2 neither")
