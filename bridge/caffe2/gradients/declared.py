# SPDX-License-Identifier: Apache-2.0
"""The gradients that operators declare beside their functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bridge.annotation import Any
from bridge.caffe2.definitions.schemas import gradient_of
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern


def declared_gradient(op_type: str) -> Callable[[GradientMaker], None] | None:
    """Return the gradient that is declared with an operator type, or None."""
    gradient = gradient_of(op_type)
    if isinstance(gradient, str):
        return partial(_by_text, gradient)
    code = getattr(gradient, "__code__", None)
    if code is not None and code.co_varnames[: code.co_argcount] == ("maker",):
        return gradient  # type: ignore[no-any-return]
    return None if gradient is None else partial(_by_function, gradient)


def _by_function(function: Callable[..., Any], maker: GradientMaker) -> None:
    operators, gradients = function(maker.op, maker.given)
    if operators is not None:
        several = operators if isinstance(operators, list) else [operators]
        maker.gradient_ops.extend(several)
    maker.input_gradients = list(gradients)


def _by_text(text: str, maker: GradientMaker) -> None:
    """Add the operators of a pattern; none for "none". Raises EnforceNotMet for a refusal."""
    if text in _REFUSALS:
        maker.enforce(False, _REFUSALS[text])
    elif text != "none":
        add_pattern(text, maker)


_REFUSALS = {
    "undefined": "is not defined; a StopGradient after the operator makes it unnecessary",
    "unimplemented": "is not implemented, in Caffe2 neither",
}
