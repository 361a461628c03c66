# SPDX-License-Identifier: Apache-2.0
"""The gradients that operators declare beside their functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.definitions.operator_types import load_built_in
from bridge.caffe2.gradients.patterns import add_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bridge.caffe2.gradients.maker import GradientMaker

__all__ = ["declare_gradient", "declared_gradient", "gradient_maker"]

# By operator type; each adds the gradient operators to a maker.
_declared: dict[str, Callable[[GradientMaker], None]] = {}


def gradient_maker(gradient: Any) -> Callable[[GradientMaker], None]:
    """Return the maker of a declared gradient.

    gradient: a pattern, or "none", "undefined" or "unimplemented"; or a function of the operator
    and the gradients of its outputs, as `GradientRegistry.RegisterGradient` takes, or one of a
    GradientMaker alone, named `maker`.

    Raises EnforceNotMet, also a ValueError: it is none of these.
    """
    if callable(gradient):
        code = getattr(gradient, "__code__", None)
        makes = code is not None and code.co_varnames[: code.co_argcount] == ("maker",)
        return gradient if makes else partial(_by_function, gradient)
    if isinstance(gradient, str) and gradient in _WORDS:
        return _WORDS[gradient]
    if isinstance(gradient, str) and ">" in gradient:
        return partial(add_pattern, gradient)
    raise EnforceValueError(
        f"{gradient!r} is not a gradient: give a pattern, such as 'ReluGradient o0 g0 > 0', one of "
        f"{sorted(_WORDS)}, or a function.",
        "operator",
    )


def declare_gradient(
    op_type: str, maker: Callable[[GradientMaker], None], is_built_in: bool = False
) -> None:
    """Set the gradient of an operator type. is_built_in: one that a user declared stays."""
    if not is_built_in or op_type not in _declared:
        _declared[op_type] = maker


def declared_gradient(op_type: str) -> Callable[[GradientMaker], None] | None:
    """Return the gradient of an operator type that is declared with it, or None."""
    if op_type not in _declared:
        load_built_in(op_type)
    return _declared.get(op_type)


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
