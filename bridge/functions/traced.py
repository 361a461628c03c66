# SPDX-License-Identifier: Apache-2.0
"""A wrapped function in another framework's graph: operations on arrays of known shapes.

`Forward` is the function itself, `Pull` the gradients of another operation. Each can be run, or
recorded; recorded, it has one more result, a token, and its gradients are a `Pull` of it.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.functions.outcome import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.functions.call import Call, Results
    from bridge.functions.outcome import Node

# Outlines that are kept for each wrapped function.
_MOST = 256


class Operation:
    """An operation on tensors: first `count` of values, some of which are tokens.

    inside: the library that it runs in. floats: which inputs have gradients.
    """

    inside: Any
    count: int
    floats: list[int]

    def specs(self, inputs: list[Spec]) -> list[Spec]:
        """Return the Spec of each result."""
        raise NotImplementedError

    def run(self, inputs: list[Any]) -> list[Any]:
        """Return the results for inputs of the library inside."""
        raise NotImplementedError

    def record(self, inputs: list[Any]) -> tuple[list[Any], Node]:
        """Return the results, and the node whose inputs are `floats`."""
        raise NotImplementedError

    def is_token(self, number: int) -> bool:
        """Return whether the input is a token, which stays a NumPy array."""
        return False


class Forward(Operation):
    """The function. Its inputs are the tensors with the numbers `symbols`; others are fixed.

    results: its results beside tensors, once it was run or outlined.
    """

    def __init__(self, inside: Any, call: Call, symbols: list[int], fixed: dict[int, Any]) -> None:
        self.inside = inside
        self.call = call.bare()
        self.symbols = symbols
        self.fixed = fixed
        self.count = len(symbols)
        self.floats: list[int] = []
        self.results: Results | None = None
        self._outlined = False

    def _tensors(self, inputs: list[Any]) -> list[Any]:
        tensors = [self.fixed.get(number) for number in range(len(self.call.libraries))]
        for number, x in zip(self.symbols, inputs, strict=True):
            tensors[number] = x
        return tensors

    def specs(self, inputs: list[Spec]) -> list[Spec]:
        """Return the Spec of each result."""
        outlines = self.inside.outlines
        key: Any = (self.call.static(), tuple(inputs), tuple(self.symbols))
        try:
            found = outlines.get(key)
        except TypeError:  # an argument that is not a tensor cannot be hashed
            found = key = None
        if found is None:
            found = self.inside.outline(self.call, self._tensors(inputs))
            if key is not None:
                if len(outlines) >= _MOST:
                    outlines.clear()
                outlines[key] = found
        self.results, specs = found
        self._outlined = True
        self.expected = specs
        return list(specs)

    def _check(self, results: Results, tensors: list[Any]) -> None:
        """Keep the results, which in a graph must be as they were outlined."""
        if not self._outlined:
            self.results = results
            return
        assert self.results is not None
        difference = self.results.difference(results)
        if difference:
            raise ValueError(
                f"The function returned {difference}, which was found when its shapes were. "
                "Results other than tensors may not depend on values in jit, vmap and tf.function."
            )

    def run(self, inputs: list[Any]) -> list[Any]:
        """Return the results for inputs of the library inside."""
        outcome = self.inside.run(self.call, self._tensors(inputs))
        self._check(outcome.results, outcome.tensors)
        return list(outcome.tensors)

    def record(self, inputs: list[Any]) -> tuple[list[Any], Node]:
        """Return the results, and the node whose inputs are `floats`."""
        floats = [self.symbols[number] for number in self.floats]
        outcome = self.inside.record(self.call, self._tensors(inputs), floats)
        self._check(outcome.results, outcome.tensors)
        return list(outcome.tensors), outcome.node


class Pull(Operation):
    """The gradients of an operation: of its inputs, its token, and cotangents.

    wanted: which of its floating inputs. given: of which results there is a cotangent.
    """

    def __init__(self, of: Operation, wanted: list[int], given: list[bool]) -> None:
        self.inside = of.inside
        self.of = of
        self.wanted = wanted
        self.given = given
        first = of.count + 1
        self.count = first + sum(given)
        self.floats = [*of.floats, *range(first, self.count)]

    def is_token(self, number: int) -> bool:
        """Return whether the input is a token."""
        return number == self.of.count or (number < self.of.count and self.of.is_token(number))

    def specs(self, inputs: list[Spec]) -> list[Spec]:
        """Return the Spec of each result."""
        return [inputs[self.of.floats[number]] for number in self.wanted]

    def _node(self, inputs: list[Any]) -> Node:
        records, token = self.inside.records, inputs[self.of.count]
        node: Node | None = records.find(token)
        if node is not None:
            return node
        if self.inside.random_state() is None:
            raise RuntimeError(
                "The forward pass of this backward pass is gone: more than a thousand others came "
                "between, and this library cannot repeat it with the same random numbers."
            )
        state = records.state(token)
        if not state:
            repeated: Node = self.of.record(inputs[: self.of.count])[1]
            return repeated
        with self.inside.restored(state):
            return self.of.record(inputs[: self.of.count])[1]

    def _cotangents(self, inputs: list[Any]) -> list[Any]:
        following = iter(inputs[self.of.count + 1 :])
        return [next(following) if is_given else None for is_given in self.given]

    def run(self, inputs: list[Any]) -> list[Any]:
        """Return the results for inputs of the library inside."""
        return self._node(inputs).pull(self._cotangents(inputs), self.wanted)

    def record(self, inputs: list[Any]) -> tuple[list[Any], Node]:
        """Return the results, and the node whose inputs are `floats`."""
        gradients, node = self._node(inputs).pull_recorded(self._cotangents(inputs))
        return [gradients[number] for number in self.wanted], _Selected(
            node, self.wanted, len(self.of.floats)
        )


class _Selected:
    """A node of which only some results went out."""

    def __init__(self, node: Node, wanted: list[int], count: int) -> None:
        self.node = node
        self.wanted = wanted
        self.count = count

    def _all(self, cotangents: list[Any]) -> list[Any]:
        full: list[Any] = [None] * self.count
        for number, x in zip(self.wanted, cotangents, strict=True):
            full[number] = x
        return full

    def pull(self, cotangents: list[Any], wanted: list[int]) -> list[Any]:
        return self.node.pull(self._all(cotangents), wanted)

    def pull_recorded(self, cotangents: list[Any]) -> tuple[list[Any], Node]:
        return self.node.pull_recorded(self._all(cotangents))
