# SPDX-License-Identifier: Apache-2.0
"""EagerInside: a library with eager tensors and autograd, such as torch and Paddle, inside.

The function runs on detached tensors, under autograd of its own if it is recorded.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.functions.call import Call, Results
from bridge.functions.outcome import Outcome


class _Node:
    """The graph between inputs and results; kept as long as this is."""

    __slots__ = ("inputs", "inside", "results")

    def __init__(self, inside: EagerInside, inputs: list[Any], results: list[Any]) -> None:
        self.inside = inside
        self.inputs = inputs
        self.results = results

    def _pull(self, cotangents: list[Any], wanted: list[int], recorded: bool) -> list[Any]:
        pairs = [
            (result, cotangent)
            for result, cotangent in zip(self.results, cotangents, strict=True)
            if cotangent is not None and result is not None and self.inside.is_recorded(result)
        ]
        if not pairs or not wanted:
            return [None] * len(wanted)
        return list(
            self.inside.autograd.grad(
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
        leaves = [None if x is None else self.inside.leaf(x) for x in cotangents]
        with self.inside.library.enable_grad():
            gradients = self._pull(leaves, list(range(len(self.inputs))), True)
        inputs = [*self.inputs, *(x for x in leaves if x is not None)]
        found = [None if x is None else x.detach() for x in gradients]
        return found, _Node(self.inside, inputs, gradients)


class EagerInside:
    """A function of tensors of such a library.

    A derived class sets `library`, and `autograd`, the module of the library that has ``grad``.
    """

    own = False
    library: Any
    autograd: Any
    arrive: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.direct = function

    @staticmethod
    def leaf(x: Any) -> Any:
        """Return a tensor of the memory of `x` that gradients are wanted of."""
        raise NotImplementedError

    @staticmethod
    def is_recorded(x: Any) -> bool:
        """Return whether autograd has recorded how `x` was computed."""
        raise NotImplementedError

    def _called(self, call: Call, tensors: list[Any]) -> tuple[Results, list[Any]]:
        args, kwargs = call.arguments(tensors)
        results, found = Results.of(self.function(*args, **kwargs))
        kept = [
            x if isinstance(x, self.library.Tensor) else self.arrive(x, "", True) for x in found
        ]
        return results, kept

    def run(self, call: Call, tensors: list[Any]) -> Outcome:
        """Run the function; see `bridge.functions.inside`."""
        results, found = self._called(call, tensors)
        return Outcome(results, [x.detach() for x in found])

    def record(self, call: Call, tensors: list[Any], floats: list[int]) -> Outcome:
        """Run the function and keep its derivatives; see `bridge.functions.inside`."""
        tensors = list(tensors)
        for number in floats:
            tensors[number] = self.leaf(tensors[number])  # of its own, which no other call has
        with self.library.enable_grad():
            results, found = self._called(call, tensors)
        return Outcome(
            results,
            [x.detach() for x in found],
            _Node(self, [tensors[number] for number in floats], found),
            [self.is_recorded(x) for x in found],
        )
