# SPDX-License-Identifier: Apache-2.0
"""The gradients that operators declare beside their functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.gradients.patterns import add_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bridge.caffe2.gradients.maker import GradientMaker

__all__ = ["declare_gradient", "declared"]

# By operator type; each adds the gradient operators to a maker.
declared: dict[str, Callable[[GradientMaker], None]] = {}


def declare_gradient(op_type: str, gradient: Any) -> None:
    """Set the gradient of an operator type.

    gradient: a pattern, or "none", "undefined" or "unimplemented"; or a function of the operator
    and the gradients of its outputs, as `GradientRegistry.RegisterGradient` takes.

    Raises EnforceNotMet, also a ValueError: it is none of these.
    """
    if callable(gradient):
        declared[op_type] = partial(_by_function, gradient)
    elif isinstance(gradient, str) and gradient in _WORDS:
        declared[op_type] = _WORDS[gradient]
    elif isinstance(gradient, str) and ">" in gradient:
        declared[op_type] = partial(add_pattern, gradient)
    else:
        raise EnforceValueError(
            f"{gradient!r} is not a gradient: give a pattern, such as 'ReluGradient o0 g0 > 0', "
            f"one of {sorted(_WORDS)}, or a function.",
            "operator",
        )


def _by_function(function: Callable[..., Any], maker: GradientMaker) -> None:
    operators, gradients = function(maker.op, maker.given)
    if operators is not None:
        several = operators if isinstance(operators, list) else [operators]
        maker.gradient_ops.extend(several)
    maker.input_gradients = list(gradients)


def _none(maker: GradientMaker) -> None:
    pass


def _undefined(maker: GradientMaker) -> None:
    maker.enforce(False, "is not defined; a StopGradient after the operator makes it unnecessary")


def _unimplemented(maker: GradientMaker) -> None:
    maker.enforce(False, "is not implemented, in Caffe2 neither")


_WORDS: dict[str, Callable[[GradientMaker], None]] = {
    "none": _none,
    "undefined": _undefined,
    "unimplemented": _unimplemented,
}
