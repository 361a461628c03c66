# SPDX-License-Identifier: Apache-2.0
"""torch outside: an ``autograd.Function``, whose backward pass is one itself if it is recorded."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad

from bridge.annotation import Any
from bridge.functions import crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.functions.call import Call
    from bridge.functions.outcome import Node

DETACH = "x.detach()"
# whether `call` is for calls without tracked tensors, too
ALWAYS = False
_unpack_dual: Any = forward_ad.unpack_dual


def is_tracked(x: Any) -> bool:
    """Return whether autograd asks for a gradient of `x`.

    Raises BufferError: it has a tangent of forward mode.
    """
    if forward_ad._current_level >= 0 and _unpack_dual(x).tangent is not None:
        raise crossing.drop_error("torch", "forward mode does not cross libraries", DETACH)
    return bool(x.requires_grad) and torch.is_grad_enabled()


def is_differentiated(x: Any) -> bool:
    """Return True: whether `x` is differentiated is known at the call, and not only later."""
    return True


class _Recorded(torch.autograd.Function):
    """A run of the inside. `start` gives its node, its results and which of them have gradients.

    The first `count` of `tensors` are those whose gradients the node knows. The others are kept
    too: their memory is shared, so that a change of it before the backward pass is an error.
    """

    @staticmethod
    def forward(ctx: Any, inside: Any, start: Any, count: int, *tensors: Any) -> Any:
        node, results, gradients = start()
        ctx.inside, ctx.node, ctx.count = inside, node, count
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        plain = [
            x
            for x, has in zip(results, gradients, strict=True)
            if x is not None and not has and not x.is_complex()
        ]
        ctx.mark_non_differentiable(*plain)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        tensors = ctx.saved_tensors
        wanted = [number for number in range(ctx.count) if ctx.needs_input_grad[3 + number]]
        if torch.is_grad_enabled():
            gradients = _recorded_gradients(ctx.inside, ctx.node, tensors[: ctx.count], cotangents)
        else:
            gradients = [None] * ctx.count
            pulled = ctx.node.pull(_arrived(ctx.inside, cotangents), wanted)
            found = crossing.delivered(ctx.inside, pulled, "torch")
            for number, x in zip(wanted, found, strict=True):
                gradients[number] = x
        return (None, None, None, *gradients, *[None] * (len(tensors) - ctx.count))


def _arrived(inside: Any, cotangents: Any) -> list[Any]:
    if any(x is not None and x.is_complex() for x in cotangents):
        raise crossing.complex_error()
    return crossing.arrived(inside, cotangents, "torch")


def _recorded_gradients(inside: Any, node: Node, inputs: Any, cotangents: Any) -> Any:
    def start() -> tuple[Any, list[Any], list[bool]]:
        gradients, further = node.pull_recorded(_arrived(inside, cotangents))
        results = crossing.delivered(inside, gradients, "torch")
        return further, results, [x is not None for x in results]

    given = [x for x in cotangents if x is not None]
    count = len(inputs) + len(given)
    apply: Any = _Recorded.apply
    return apply(inside, start, count, *inputs, *given)


def call(inside: Any, call: Call, tracked: list[int]) -> Any:
    """Return the result of the function, with gradients of the tensors `tracked`."""
    tensors = crossing.arrive(inside, call, "torch")
    floats = crossing.floats_of(inside, tensors, tracked)
    outcome: Any = None

    def start() -> tuple[Any, list[Any], list[bool]]:
        nonlocal outcome
        outcome = inside.record(call, tensors, floats)
        results = crossing.delivered(inside, outcome.tensors, "torch")
        return outcome.node, results, outcome.gradients

    own = [number for number, library in enumerate(call.libraries) if library == "torch"]
    ordered = [*floats, *(number for number in own if number not in floats)]
    apply: Any = _Recorded.apply
    results = apply(inside, start, len(floats), *[call.tensors[number] for number in ordered])
    return outcome.results.rebuild(list(results))
