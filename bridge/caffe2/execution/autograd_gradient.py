# SPDX-License-Identifier: Apache-2.0
"""The gradient of an operator whose function declares none: autograd's, by `FunctionGradient`."""

from __future__ import annotations

from bridge.c10 import TypeMeta, float16, float32, float64
from bridge.caffe2.base.messages import caffe2_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.caffe2.execution.declaration import Declaration
    from bridge.caffe2.gradients.maker import GradientMaker

_FLOATS = tuple(map(TypeMeta.Make, (float16, float32, float64)))


def autograd_of(declaration: Declaration) -> Callable[[GradientMaker], None]:
    """Return the gradient of an operator that computes its function again, with autograd.

    A gradient that is registered for the type comes before it.
    """

    def by_autograd(maker: GradientMaker) -> None:
        op = maker.op
        maker.enforce(
            not declaration.effects & {"random", "state", "io"}
            and "RandomGenerator" not in declaration.filled,
            "cannot be computed by its function, which does not compute the same twice; declare it",
        )
        maker.enforce(
            not set(op.input) & set(op.output),
            "needs the inputs, and the operator works in place of one; use another output, or "
            "declare the gradient",
        )
        given = [o for o, one in enumerate(maker.output_gradients) if one is not None]
        wanted = [i for i in range(len(op.input)) if _is_real(declaration, i)]
        if not given or not wanted:
            return
        forward = caffe2_pb2().NetDef()
        forward.op.add().CopyFrom(op)
        names = [maker.I(i) for i in range(len(op.input))] + [maker.GO(o) for o in given]
        maker.add(
            "FunctionGradient",
            names,
            [maker.GI(i) for i in wanted],
            {"forward": forward, "given": given, "wanted": wanted},
            copied=False,
        )

    by_autograd.yields = True  # type: ignore[attr-defined]
    return by_autograd


def _is_real(declaration: Declaration, i: int) -> bool:
    """Return whether input `i` may be of floating-point numbers."""
    types = declaration.types[min(i, len(declaration.types) - 1)]
    while type(types) is int and types != i:
        i, types = types, declaration.types[types]
    if isinstance(types, list):  # the types in turn
        types = types[(i - len(declaration.types) + 1) % len(types)]
    return types is None or type(types) is int or any(one in _FLOATS for one in types)
