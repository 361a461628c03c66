# SPDX-License-Identifier: Apache-2.0
"""Paddle outside: a ``PyLayer``, whose backward pass is one itself if it is recorded."""

from __future__ import annotations

import paddle
from paddle.autograd import PyLayer

from bridge.annotation import Any
from bridge.functions import crossing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.functions.call import Call
    from bridge.functions.outcome import Node

DETACH = "x.detach()"
# whether `call` is for calls without tracked tensors, too
ALWAYS = False


def is_tracked(x: Any) -> bool:
    """Return whether autograd asks for a gradient of `x`."""
    return not x.stop_gradient and paddle.is_grad_enabled()


def is_differentiated(x: Any) -> bool:
    """Return True: whether `x` is differentiated is known at the call, and not only later."""
    return True


class _Record:
    """The record and the results of a forward pass. `start` runs it and gives its node and results.

    shared: tensors that must not change before the backward pass. inputs: those whose gradients the
    node knows. gradients: of these, from the backward pass to the gates.
    """

    def __init__(self, inside: Any, start: Any, shared: list[Any], inputs: list[Any]) -> None:
        self.inside = inside
        self.start = start
        self.shared = shared
        self.versions = [x.inplace_version for x in shared]
        self.inputs = inputs
        self.gradients: list[Any] = []
        self.node: Any = None
        self.there: list[bool] = []

    def check(self) -> None:
        """Raise RuntimeError: a tensor was changed since the forward pass."""
        for x, version in zip(self.shared, self.versions, strict=True):
            if x.inplace_version != version:
                raise RuntimeError(
                    f"A tensor of shape {list(x.shape)} that a wrapped function was called with "
                    "was changed in place before its backward pass: it has version "
                    f"{x.inplace_version}, and had {version}. Pass a clone()."
                )


class _Gate(PyLayer):
    """The way of one gradient out of a backward pass.

    Paddle refuses a gradient that a PyLayer returns for a tensor if ``paddle.grad`` did not ask for
    it, and does not tell which it asks for (Paddle 3.3). A gate has one tensor, so that it is not
    run at all where no gradient is asked for. The link from gate to function is a number without a
    meaning.
    """

    @staticmethod
    def forward(ctx: Any, record: _Record, number: int, x: Any) -> Any:
        ctx.record, ctx.number = record, number
        return paddle.zeros([], "float32")

    @staticmethod
    def backward(ctx: Any, _: Any) -> Any:
        gradient = ctx.record.gradients[ctx.number]
        return paddle.zeros_like(ctx.record.inputs[ctx.number]) if gradient is None else gradient


class _Recorded(PyLayer):
    """A run of the inside: see `_Record`. Its only tensor comes from the gates."""

    @staticmethod
    def forward(ctx: Any, record: _Record, gates: Any) -> Any:
        record.node, results, has_gradient = record.start()
        record.start = None
        record.there = [x is not None for x in results]
        ctx.record = record
        ctx.set_materialize_grads(False)
        plain = [
            x
            for x, has in zip(results, has_gradient, strict=True)
            if x is not None and not has and not x.is_complex()
        ]
        ctx.mark_non_differentiable(*plain)
        return tuple([x for x in results if x is not None])

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        record = ctx.record
        record.check()
        following = iter(cotangents)
        full = [next(following) if is_there else None for is_there in record.there]
        if any(x is not None and x.is_complex() for x in full):
            raise crossing.complex_error()
        if paddle.is_grad_enabled():
            record.gradients = _recorded_gradients(record, full)
        else:
            arrived = crossing.arrived(record.inside, full, "paddle")
            pulled = record.node.pull(arrived, list(range(len(record.inputs))))
            record.gradients = crossing.delivered(record.inside, pulled, "paddle")
        return paddle.zeros([len(record.inputs)], "float32")


def _applied(record: _Record) -> list[Any]:
    """Return the results, None where there is none."""
    gate: Any = _Gate.apply
    recorded: Any = _Recorded.apply
    gates = [gate(record, number, x) for number, x in enumerate(record.inputs)]
    found = recorded(record, paddle.stack(gates))
    following = iter(found if isinstance(found, (tuple, list)) else [found])
    return [next(following) if is_there else None for is_there in record.there]


def _recorded_gradients(record: _Record, cotangents: list[Any]) -> list[Any]:
    def start() -> tuple[Node, list[Any], list[bool]]:
        inside = record.inside
        gradients, further = record.node.pull_recorded(
            crossing.arrived(inside, cotangents, "paddle")
        )
        results = crossing.delivered(inside, gradients, "paddle")
        return further, results, [x is not None for x in results]

    given = [x for x in cotangents if x is not None]
    shared, inputs = [*record.shared, *given], [*record.inputs, *given]
    return _applied(_Record(record.inside, start, shared, inputs))


def call(inside: Any, call: Call, tracked: list[int]) -> Any:
    """Return the result of the function, with gradients of the tensors `tracked`."""
    tensors = crossing.arrive(inside, call, "paddle")
    floats = crossing.floats_of(inside, tensors, tracked)
    outcome: Any = None

    def start() -> tuple[Node, list[Any], list[bool]]:
        nonlocal outcome
        outcome = inside.record(call, tensors, floats)
        results = crossing.delivered(inside, outcome.tensors, "paddle")
        return outcome.node, results, outcome.gradients

    shared = [
        x for x, library in zip(call.tensors, call.libraries, strict=True) if library == "paddle"
    ]
    inputs = [call.tensors[number] for number in floats]
    results = _applied(_Record(inside, start, shared, inputs))
    return outcome.results.rebuild(results)
