# SPDX-License-Identifier: Apache-2.0
"""TensorFlow outside: a ``custom_gradient``, around a ``py_function`` in a graph.

In a graph it is not known yet whether a gradient will be asked for, so that the function is always
recorded there; the record lives as long as the token in the graph, which is gone at once if nobody
has use for it.
"""

from __future__ import annotations

from functools import partial

import tensorflow as tf

from bridge.annotation import Any
from bridge.functions import crossing
from bridge.functions.outcome import Spec
from bridge.functions.traced import Forward, Operation, Pull

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.functions.call import Call
    from bridge.functions.outcome import Node

DETACH = "tf.stop_gradient(x), TensorFlow's detach(), outside of tf.function"
# whether `call` is for calls without tracked tensors, too
ALWAYS = True
try:
    from tensorflow.python.eager.forwardprop_util import pack_tangents
    from tensorflow.python.eager.record import should_record_backprop as _is_watched
except ImportError:  # all that a tape may watch is recorded

    def _is_watched(tensors: Any) -> bool:
        return True

    pack_tangents = None


def _tangents(tensors: Any) -> bool:
    """Return whether a tensor has a tangent of a tf.autodiff.ForwardAccumulator."""
    return pack_tangents is not None and len(pack_tangents(tensors).tangents) > 0


def is_tracked(x: Any) -> bool:
    """Return whether a tape watches `x`, or `x` is symbolic.

    Raises BufferError: it has a tangent of forward mode.
    """
    if isinstance(x, tf.Variable):
        x = tf.convert_to_tensor(x)
    if not _is_eager(x):
        return True
    if _tangents([x]):
        raise crossing.drop_error("tensorflow", "forward mode does not cross libraries", DETACH)
    return bool(_is_watched([x]))


def is_differentiated(x: Any) -> bool:
    """Return whether a tape watches `x`: a symbolic tensor does not tell."""
    return bool(tf.executing_eagerly())


def _is_eager(x: Any) -> bool:
    return hasattr(x, "numpy")


def call(inside: Any, call: Call, tracked: list[int]) -> Any:
    """Return the result of the function, with gradients of the tensors `tracked`."""
    for number, library in enumerate(call.libraries):
        if library == "tensorflow":
            call.tensors[number] = tf.convert_to_tensor(call.tensors[number])
    if not tf.executing_eagerly():
        return _in_graph(inside, call)
    if not tracked:
        return crossing.run(inside, call, "tensorflow")
    tensors = crossing.arrive(inside, call, "tensorflow")
    floats = crossing.floats_of(inside, tensors, tracked)
    outcome: Any = None

    def start() -> tuple[Node, list[Any], list[bool]]:
        nonlocal outcome
        outcome = inside.record(call, tensors, floats)
        results = [crossing.deliver(x, "tensorflow", inside.own) for x in outcome.tensors]
        return outcome.node, results, outcome.gradients

    results = _recorded(inside, start, [call.tensors[number] for number in floats])
    return outcome.results.rebuild(results)


def _recorded(inside: Any, start: Any, inputs: list[Any]) -> list[Any]:
    """Return the results that `start` gives, with gradients by its node."""

    def run(*inputs: Any) -> Any:
        node, results, has_gradient = start()

        def gradient(*upstream: Any) -> Any:
            given = _upstream_of(upstream, has_gradient)
            if _is_watched([*inputs, *(x for x in given if x is not None)]):
                found = _recorded_gradients(inside, node, list(inputs), given)
            else:
                cotangents = crossing.arrived(inside, given, "tensorflow")
                pulled = node.pull(cotangents, list(range(len(inputs))))
                found = crossing.delivered(inside, pulled, "tensorflow")
            return found[0] if len(found) == 1 else found

        return tuple(results), gradient

    found = tf.custom_gradient(run)(*inputs)
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _upstream_of(upstream: Any, has_gradient: list[bool]) -> list[Any]:
    """Return the cotangents of results with a gradient. Raises BufferError: one is complex."""
    given = []
    for x, has in zip(upstream, has_gradient, strict=True):
        if x is not None and x.dtype.is_complex and bool(tf.math.count_nonzero(x)):
            raise crossing.complex_error()
        given.append(tf.convert_to_tensor(x) if has and x is not None else None)
    return given


def _recorded_gradients(inside: Any, node: Node, inputs: list[Any], given: list[Any]) -> list[Any]:
    found: list[Any] = []

    def start() -> tuple[Node, list[Any], list[bool]]:
        gradients, further = node.pull_recorded(crossing.arrived(inside, given, "tensorflow"))
        found.extend(crossing.delivered(inside, gradients, "tensorflow"))
        some = [x for x in found if x is not None]
        return _Some(further, found), some, [True] * len(some)

    results = iter(_recorded(inside, start, [*inputs, *(x for x in given if x is not None)]))
    return [None if x is None else next(results) for x in found]


class _Some:
    """A node some of whose results are None, which TensorFlow does not know."""

    def __init__(self, node: Node, results: list[Any]) -> None:
        self.node = node
        self.there = [x is not None for x in results]

    def _all(self, cotangents: list[Any]) -> list[Any]:
        following = iter(cotangents)
        return [next(following) if is_there else None for is_there in self.there]

    def pull(self, cotangents: list[Any], wanted: list[int]) -> list[Any]:
        return self.node.pull(self._all(cotangents), wanted)

    def pull_recorded(self, cotangents: list[Any]) -> tuple[list[Any], Node]:
        return self.node.pull_recorded(self._all(cotangents))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _in_graph(inside: Any, call: Call) -> Any:
    symbols = [number for number, library in enumerate(call.libraries) if library == "tensorflow"]
    fixed = {
        number: inside.arrive(call.tensors[number], library, True)
        for number, library in enumerate(call.libraries)
        if library != "tensorflow"
    }
    inputs = [call.tensors[number] for number in symbols]
    forward = Forward(inside, call, symbols, fixed)
    forward.floats = [number for number, x in enumerate(inputs) if x.dtype.is_floating]
    results = _in_graph_of(forward, inputs)
    assert forward.results is not None
    return forward.results.rebuild(results)


def _in_graph_of(operation: Operation, inputs: list[Any]) -> list[Any]:
    """Return the results of an operation in a graph, with gradients."""
    recorded = hasattr(operation.inside, "record")

    def run(*inputs: Any) -> Any:
        results = _called_by_graph(operation, recorded, list(inputs))
        token = results.pop() if recorded else None

        def gradient(*upstream: Any) -> Any:
            if not recorded:
                library = type(operation.inside).__module__.rpartition(".")[2]
                raise crossing.drop_error("tensorflow", f"{library} has no gradients", DETACH)
            given, kept = _given_in_graph(upstream)
            wanted = list(range(len(operation.floats)))
            pull = Pull(operation, wanted, given)
            found = iter(_in_graph_of(pull, [*inputs, token, *kept]) if kept else [])
            gradients = [
                next(found, None) if number in operation.floats else None
                for number in range(len(inputs))
            ]
            return gradients[0] if len(gradients) == 1 else gradients

        return tuple(results), gradient

    found = tf.custom_gradient(run)(*inputs)
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _given_in_graph(upstream: Any) -> tuple[list[bool], list[Any]]:
    given: list[bool] = []
    kept: list[Any] = []
    for x in upstream:
        if x is not None and x.dtype.is_complex:
            check = tf.debugging.assert_equal(x, tf.zeros_like(x), str(crossing.complex_error()))
            kept = [*kept, check]
        given.append(x is not None and x.dtype.is_floating)
    checks = [x for x in kept if x is not None]
    with tf.control_dependencies(checks):
        kept = [tf.identity(x) for x, is_given in zip(upstream, given, strict=True) if is_given]
    return given, kept


def _called_by_graph(operation: Operation, recorded: bool, inputs: list[Any]) -> list[Any]:
    if isinstance(operation, Pull):
        asked = [inputs[operation.of.floats[number]] for number in operation.wanted]
        shapes, types = [x.shape for x in asked], [x.dtype for x in asked]
    else:
        specs = operation.specs([_spec(x) for x in inputs])
        known = all(x.shape.is_fully_defined() for x in inputs)
        shapes = [tf.TensorShape(x.shape if known else [None] * len(x.shape)) for x in specs]
        types = [tf.dtypes.as_dtype(x.dtype) for x in specs]
    host = partial(_called_back, operation, recorded, types, shapes)
    results = list(tf.py_function(host, inputs, [*types, tf.uint8] if recorded else types))
    if recorded:
        shapes = [*shapes, (operation.inside.records.size(b""),)]
    for result, shape in zip(results, shapes, strict=True):
        result.set_shape(shape)
    return results


def _spec(x: Any) -> Spec:
    """Return the Spec of a symbolic tensor. A size that is not known is taken as 1."""
    if x.shape.rank is None:
        raise ValueError(
            "The number of dimensions of a tensor is not known in this graph, so that those of "
            "the results cannot be found. Give it with tensor.set_shape, or in input_signature."
        )
    return Spec(tuple(1 if size is None else size for size in x.shape), x.dtype.name)


def _called_back(
    operation: Operation, recorded: bool, types: list[Any], shapes: list[Any], *inputs: Any
) -> list[Any]:
    from bridge.front import to_tensorflow

    inside = operation.inside
    tensors = [
        x.numpy() if operation.is_token(i) else inside.arrive(x, "tensorflow")
        for i, x in enumerate(inputs)
    ]
    node: Node | None = None
    if recorded and isinstance(operation, Pull):
        found, node = _recorded_pull(operation, tensors)
    elif recorded:
        found, node = operation.record(tensors)
    else:
        found = operation.run(tensors)
    results = []
    for number, (x, dtype, shape) in enumerate(zip(found, types, shapes, strict=False)):
        if x is None:
            x = _zeros(operation, number, inputs)
        result = x if tf.is_tensor(x) else crossing.deliver(x, "tensorflow", inside.own)
        if result.dtype != dtype or not shape.is_compatible_with(result.shape):
            raise ValueError(
                f"The function returned a tensor of {result.dtype.name} with the shape "
                f"{result.shape}, and {dtype.name} with the shape {shape} when its shapes were "
                "found. Shapes may not depend on values in tf.function."
            )
        results.append(result)
    if recorded:
        results.append(to_tensorflow(inside.records.token(node)))
    return results


def _recorded_pull(operation: Pull, tensors: list[Any]) -> tuple[list[Any], Node]:
    """Return gradients, and their node.

    A graph does not tell whether it will ask for second derivatives. Where there are none, that is
    an error only then.
    """
    try:
        return operation.record(tensors)
    except Exception as error:  # noqa: BLE001  of any library, and kept
        return operation.run(tensors), _Missing(error)


class _Missing:
    """Derivatives that a library could not give; asked for, they are its error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def pull(self, cotangents: list[Any], wanted: list[int]) -> list[Any]:
        raise self.error

    def pull_recorded(self, cotangents: list[Any]) -> tuple[list[Any], Node]:
        raise self.error


def _zeros(operation: Operation, number: int, inputs: Any) -> Any:
    assert isinstance(operation, Pull)
    return tf.zeros_like(inputs[operation.of.floats[operation.wanted[number]]])
