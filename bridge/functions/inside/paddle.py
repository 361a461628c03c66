# SPDX-License-Identifier: Apache-2.0
"""Paddle inside: the function runs on detached tensors, under autograd of its own if recorded."""

from __future__ import annotations

from contextlib import contextmanager

import paddle

from bridge.functions.call import Results
from bridge.functions.inside.zeros import outline_on_zeros
from bridge.functions.outcome import Outcome, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from bridge.functions.call import Call


def arrive(x: Any, library: str, keep: bool = False) -> Any:
    """Return a Paddle tensor of the memory of `x`; a copy for JAX and TensorFlow."""
    from bridge.front import convert

    if library == "paddle":
        x = x if x.stop_gradient else x.detach()
        return x.clone() if keep else x
    if library == "torch" and x.requires_grad:
        x = x.detach()
    return convert(x, "paddle", copy=True) if keep else convert(x, "paddle")


def _leaf(x: Any) -> Any:
    leaf = x.detach()
    leaf.stop_gradient = False
    return leaf


class _Node:
    """The graph between inputs and results; kept as long as this is."""

    __slots__ = ("inputs", "results")

    def __init__(self, inputs: list[Any], results: list[Any]) -> None:
        self.inputs = inputs
        self.results = results

    def _pull(self, cotangents: list[Any], wanted: list[int], recorded: bool) -> list[Any]:
        pairs = [
            (result, cotangent)
            for result, cotangent in zip(self.results, cotangents, strict=True)
            if cotangent is not None and result is not None and not result.stop_gradient
        ]
        if not pairs or not wanted:
            return [None] * len(wanted)
        return list(
            paddle.grad(
                [result for result, _ in pairs],
                [self.inputs[number] for number in wanted],
                [cotangent for _, cotangent in pairs],
                retain_graph=True,
                create_graph=recorded,
                allow_unused=True,
            )
        )

    def pull(self, cotangents: list[Any], wanted: list[int]) -> list[Any]:
        return self._pull(cotangents, wanted, False)

    def pull_recorded(self, cotangents: list[Any]) -> tuple[list[Any], _Node]:
        leaves = [None if x is None else _leaf(x) for x in cotangents]
        with paddle.enable_grad():
            gradients = self._pull(leaves, list(range(len(self.inputs))), True)
        node = _Node([*self.inputs, *(x for x in leaves if x is not None)], gradients)
        return [None if x is None else x.detach() for x in gradients], node


class Inside:
    """A function of Paddle tensors."""

    own = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.direct = function

    arrive = staticmethod(arrive)

    @staticmethod
    def is_floating(tensor: Any) -> bool:
        """Return whether its elements are real floating-point numbers."""
        return bool(tensor.is_floating_point())

    @staticmethod
    def is_complex(tensor: Any) -> bool:
        """Return whether its elements are complex."""
        return bool(tensor.is_complex())

    def _called(self, call: Call, tensors: list[Any]) -> tuple[Results, list[Any]]:
        args, kwargs = call.arguments(tensors)
        results, found = Results.of(self.function(*args, **kwargs))
        return results, [x if isinstance(x, paddle.Tensor) else arrive(x, "", True) for x in found]

    def run(self, call: Call, tensors: list[Any]) -> Outcome:
        """Run the function; see `bridge.functions.inside`."""
        results, found = self._called(call, tensors)
        return Outcome(results, [x.detach() for x in found])

    def record(self, call: Call, tensors: list[Any], floats: list[int]) -> Outcome:
        """Run the function and keep its derivatives; see `bridge.functions.inside`."""
        tensors = list(tensors)
        for number in floats:
            tensors[number] = _leaf(tensors[number])
        with paddle.enable_grad():
            results, found = self._called(call, tensors)
        return Outcome(
            results,
            [x.detach() for x in found],
            _Node([tensors[number] for number in floats], found),
            [self.is_floating(x) and not x.stop_gradient for x in found],
        )

    def outline(self, call: Call, specs: list[Any]) -> tuple[Results, list[Spec]]:
        """Return the results of the function for shapes; see `bridge.functions.inside`."""
        return outline_on_zeros(self, call, specs)

    def random_state(self) -> bytes | None:
        """Return None: Paddle does not tell it as bytes, so nothing is run again."""
        return None

    @contextmanager
    def restored(self, state: bytes | None) -> Iterator[None]:
        """Run with the random state as it is now, and set it again."""
        now = paddle.get_rng_state()
        try:
            yield
        finally:
            paddle.set_rng_state(now)
