# SPDX-License-Identifier: Apache-2.0
"""TensorFlow inside: the function runs eagerly, under a tape of its own if recorded."""

from __future__ import annotations

from contextlib import nullcontext

import tensorflow as tf

from bridge.annotation import Any
from bridge.functions.call import Results
from bridge.functions.outcome import Outcome, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from bridge.functions.call import Call


def arrive(x: Any, library: str, keep: bool = False) -> Any:
    """Return a TensorFlow tensor of the memory of `x`."""
    from bridge.front import to_tensorflow

    if library == "tensorflow":
        return x
    if (library == "torch" and x.requires_grad) or (library == "paddle" and not x.stop_gradient):
        x = x.detach()
    return to_tensorflow(x, copy=True) if keep else to_tensorflow(x)


class _Node:
    """The tape between inputs and results; kept as long as this is."""

    __slots__ = ("inputs", "results", "tape")

    def __init__(self, tape: Any, inputs: list[Any], results: list[Any]) -> None:
        self.tape = tape
        self.inputs = inputs
        self.results = results

    def pull(self, cotangents: list[Any], wanted: list[int]) -> list[Any]:
        pairs = [
            (result, cotangent)
            for result, cotangent in zip(self.results, cotangents, strict=True)
            if cotangent is not None and result is not None
        ]
        if not pairs or not wanted:
            return [None] * len(wanted)
        gradients = self.tape.gradient(
            [result for result, _ in pairs],
            [self.inputs[number] for number in wanted],
            [cotangent for _, cotangent in pairs],
        )
        return [None if x is None else tf.convert_to_tensor(x) for x in gradients]

    def pull_recorded(self, cotangents: list[Any]) -> tuple[list[Any], _Node]:
        with self.tape:
            leaves = [None if x is None else tf.identity(x) for x in cotangents]
            given = [x for x in leaves if x is not None]
            self.tape.watch(given)
            gradients = self.pull(leaves, list(range(len(self.inputs))))
        return gradients, _Node(self.tape, [*self.inputs, *given], gradients)


class Inside:
    """A function of TensorFlow tensors."""

    own = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def direct(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; in a graph, as AutoGraph converts it."""
        if tf.executing_eagerly():
            return self.function(*args, **kwargs)
        status = tf.__internal__.autograph.control_status_ctx()
        return tf.__internal__.autograph.tf_convert(self.function, status)(*args, **kwargs)

    arrive = staticmethod(arrive)

    @staticmethod
    def is_floating(tensor: Any) -> bool:
        """Return whether its elements are real floating-point numbers."""
        return bool(tensor.dtype.is_floating)

    @staticmethod
    def is_complex(tensor: Any) -> bool:
        """Return whether its elements are complex."""
        return bool(tensor.dtype.is_complex)

    def _called(self, call: Call, tensors: list[Any]) -> tuple[Results, list[Any]]:
        args, kwargs = call.arguments(tensors)
        results, found = Results.of(self.function(*args, **kwargs))
        return results, [tf.convert_to_tensor(x) for x in found]

    def run(self, call: Call, tensors: list[Any]) -> Outcome:
        """Run the function; see `bridge.functions.inside`."""
        return Outcome(*self._called(call, tensors))

    def record(self, call: Call, tensors: list[Any], floats: list[int]) -> Outcome:
        """Run the function and keep its derivatives; see `bridge.functions.inside`."""
        tensors = list(tensors)
        with tf.GradientTape(persistent=True) as tape:
            for number in floats:
                # (an object of its own: the tape goes by objects)
                tensors[number] = tf.identity(tensors[number])
            inputs = [tensors[number] for number in floats]
            tape.watch(inputs)
            results, found = self._called(call, tensors)
        gradients = [self.is_floating(x) for x in found]
        return Outcome(results, found, _Node(tape, inputs, found), gradients)

    def outline(self, call: Call, specs: list[Any]) -> tuple[Results, list[Spec]]:
        """Return the results of the function for shapes; see `bridge.functions.inside`."""
        traced: list[Any] = []

        def of_symbols(*tensors: Any) -> list[Any]:
            results, found = self._called(call, list(tensors))
            traced.append(results)
            return found

        shapes = [
            tf.TensorSpec(x.shape, x.dtype) if isinstance(x, Spec) else tf.TensorSpec.from_tensor(x)
            for x in specs
        ]
        found = tf.function(of_symbols, autograph=False).get_concrete_function(*shapes)
        specs = []
        for x in found.structured_outputs or ():
            if not x.shape.is_fully_defined():
                raise ValueError(
                    f"The shape of a result depends on values: {x.shape}. Under jit it may not."
                )
            specs.append(Spec(tuple(x.shape), x.dtype.name))
        return traced[-1], specs

    def random_state(self) -> bytes | None:
        """Return None: TensorFlow does not tell it, so nothing is run again."""
        return None

    def restored(self, state: bytes | None) -> AbstractContextManager[None]:
        """Return a context that changes nothing."""
        return nullcontext()
