# SPDX-License-Identifier: Apache-2.0
"""JAX inside: the function is traced once per shapes, and so are its derivatives.

Arguments that are not tensors are static; only numbers that a ``jax.jit`` function does not declare
static are traced, as it would. Results and gradients that JAX forwards, so that they have the
memory of an argument or of each other, are copied: all that goes out has memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import jax
import jax.numpy
import numpy

from bridge.annotation import Any
from bridge.functions.call import Call, Results, Static
from bridge.functions.outcome import Outcome, Spec
from bridge.functions.structure import flatten

_NUMBERS = (bool, int, float, complex)


# (functions that JAX does not annotate)
_wait: Any = jax.block_until_ready
_effects_barrier: Any = jax.effects_barrier
_shape: Any = jax.ShapeDtypeStruct


def arrive(x: Any, library: str, keep: bool = False) -> Any:
    """Return a JAX array of the memory of `x`."""
    from bridge.front import to_jax

    if library == "jax":
        return x
    if (library == "torch" and x.requires_grad) or (library == "paddle" and not x.stop_gradient):
        x = x.detach()
    return to_jax(x, copy=True) if keep else to_jax(x)


def _is_floating(x: Any) -> bool:
    return bool(jax.numpy.issubdtype(x.dtype, jax.numpy.floating))


def _is_array(x: Any) -> bool:
    return isinstance(x, (jax.Array, numpy.ndarray, numpy.generic))


class _Traced:
    """The arrays that a traced function returned, and the rest of its result."""

    __slots__ = ("arrays", "results")

    def __init__(self, arrays: list[Any], results: Any) -> None:
        self.arrays = arrays
        self.results = results


jax.tree_util.register_pytree_node(
    _Traced,
    lambda traced: (traced.arrays, traced.results),
    lambda results, arrays: _Traced(list(arrays), results),
)


def _linearized(trace: Callable[..., _Traced], key: Any, floats: Any, *arrays: Any) -> Any:
    """Return the floating results, their derivative, and the others with the keys of each."""

    def of_floats(*inputs: Any) -> Any:
        full = list(arrays)
        for number, value in zip(floats, inputs, strict=True):
            full[number] = value
        traced = trace(key, *full)
        smooth = tuple([_is_floating(x) for x in traced.arrays])
        parts: tuple[list[Any], list[Any]] = ([], [])
        for x, is_smooth in zip(traced.arrays, smooth, strict=True):
            parts[is_smooth].append(x)
        return parts[1], _Traced(parts[0], (traced.results, smooth))

    return jax.vjp(of_floats, *[arrays[number] for number in floats], has_aux=True)


def _pulled(wanted: Any, specs: Any, pull: Any, cotangents: Any) -> list[Any]:
    full = [
        jax.numpy.zeros(shape, dtype) if x is None else x
        for x, (shape, dtype) in zip(cotangents, specs, strict=True)
    ]
    gradients = pull(full)
    return [gradients[number] for number in wanted]


def _gradient(key: Any, *arrays: Any) -> _Traced:
    """Trace the gradients of a traced function, as a function of its arrays and cotangents."""
    trace, inner, floats, specs, given, count = key
    cotangents = iter(arrays[count:])
    _, pull, _ = _linearized(trace, inner, floats, *arrays[:count])
    full = [next(cotangents) if is_given else None for is_given in given]
    return _Traced(_pulled(range(len(floats)), specs, pull, full), None)


_record = jax.jit(_linearized, static_argnums=(0, 1, 2))
_pull = jax.jit(_pulled, static_argnums=(0, 1))


def _own(arrays: list[Any], others: Iterable[Any]) -> list[Any]:
    """Return `arrays`, with copies of those that have the memory of another or of `others`."""
    others = list(others)
    # (here other threads can have the GIL; asked for an address, JAX waits for the values with it)
    _wait([arrays, others])
    taken = {address for address in map(_address, others) if address}
    for number, array in enumerate(arrays):
        address = _address(array)
        if address in taken:
            arrays[number] = jax.numpy.array(array, copy=True)
        elif address:
            taken.add(address)
    return arrays


def _address(x: Any) -> int:
    """Return where the memory of an array is; 0: it has no elements, or is a Python number."""
    if isinstance(x, jax.Array) and x.size and len(x.devices()) == 1:
        return int(x.addressable_data(0).unsafe_buffer_pointer())
    return 0


class _Node:
    """The derivative of one traced call, with its residuals."""

    def __init__(
        self,
        trace: Callable[..., _Traced],
        key: Any,
        floats: tuple[int, ...],
        arrays: list[Any],
    ) -> None:
        self.trace = trace
        self.key = key
        self.floats = floats
        self.arrays = arrays

    def start(self) -> tuple[Any, list[Any], list[bool]]:
        """Run the function. Return the rest of its result, its arrays, and which are floating."""
        smooth, self._pull, rest = _record(self.trace, self.key, self.floats, *self.arrays)
        results, self.is_smooth = rest.results
        self.specs = tuple([(x.shape, x.dtype) for x in smooth])
        parts = iter(rest.arrays), iter(smooth)
        arrays = [next(parts[is_smooth]) for is_smooth in self.is_smooth]
        residuals = jax.tree_util.tree_leaves(self._pull)
        return results, _own(arrays, [*self.arrays, *residuals]), list(self.is_smooth)

    def _smooth(self, cotangents: list[Any]) -> list[Any]:
        return [x for x, is_smooth in zip(cotangents, self.is_smooth, strict=True) if is_smooth]

    def pull(self, cotangents: list[Any], wanted: list[int]) -> list[Any]:
        smooth = self._smooth(cotangents)
        gradients = _pull(tuple(wanted), self.specs, self._pull, smooth)
        residuals = jax.tree_util.tree_leaves(self._pull)
        return _own(gradients, [*smooth, *self.arrays, *residuals])

    def pull_recorded(self, cotangents: list[Any]) -> tuple[list[Any], _Node]:
        smooth = self._smooth(cotangents)
        given = tuple([x is not None for x in smooth])
        count = len(self.arrays)
        arrays = [*self.arrays, *(x for x in smooth if x is not None)]
        key = (self.trace, self.key, self.floats, self.specs, given, count)
        node = _Node(_gradient, key, (*self.floats, *range(count, len(arrays))), arrays)
        return node.start()[1], node


class Inside:
    """A function of JAX arrays."""

    own = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.direct = function
        # of a jax.jit function; without it all arguments that are not tensors are static
        self._jit = getattr(function, "_jit_info", None)
        self._trace = jax.jit(self._traced, static_argnums=0)

    arrive = staticmethod(arrive)
    is_floating = staticmethod(_is_floating)

    @staticmethod
    def is_complex(tensor: Any) -> bool:
        """Return whether its elements are complex."""
        return bool(jax.numpy.issubdtype(tensor.dtype, jax.numpy.complexfloating))

    def _traced(self, key: Static, *arrays: Any) -> _Traced:
        leaves = [
            leaf if place < 0 else arrays[place]
            for leaf, place in zip(key.leaves, key.places, strict=True)
        ]
        args, kwargs = key.structure.rebuild(leaves)
        results, found = Results.of(self.function(*args, **kwargs), _is_array)
        return _Traced(found, results)

    def _key(self, call: Call, arrays: list[Any]) -> tuple[Static, list[Any]]:
        """Return the static part of a call, and all that is traced."""
        if self._jit is None or all(place >= 0 for place in call.places):
            return Static(call.structure, call.places, call.leaves), arrays
        arrays, leaves, places = list(arrays), list(call.leaves), list(call.places)
        for number in self._traced_numbers(call):
            places[number] = len(arrays)
            arrays.append(leaves[number])
            leaves[number] = None
        return Static(call.structure, tuple(places), leaves), arrays

    def _traced_numbers(self, call: Call) -> Iterator[int]:
        """Yield the leaves that are numbers, of arguments that are not declared static."""
        args, kwargs = call.structure.rebuild(list(range(len(call.leaves))))
        assert self._jit is not None
        named = [*enumerate(args), *kwargs.items()]
        static = {*self._jit.static_argnums, *self._jit.static_argnames}
        for name, argument in named:
            if name in static:
                continue
            for number in flatten(argument)[0]:
                if call.places[number] < 0 and isinstance(call.leaves[number], _NUMBERS):
                    yield number

    def run(self, call: Call, tensors: list[Any]) -> Outcome:
        """Run the function; see `bridge.functions.inside`."""
        key, arrays = self._key(call, tensors)
        traced = self._trace(key, *arrays)
        if not traced.arrays:
            _effects_barrier()
        return Outcome(traced.results, _own(traced.arrays, arrays))

    def record(self, call: Call, tensors: list[Any], floats: list[int]) -> Outcome:
        """Run the function and keep its derivatives; see `bridge.functions.inside`."""
        key, arrays = self._key(call, tensors)
        node = _Node(self._trace, key, tuple(floats), arrays)
        results, found, smooth = node.start()
        return Outcome(results, found, node, smooth)

    def outline(self, call: Call, specs: list[Any]) -> tuple[Results, list[Spec]]:
        """Return the results of the function for shapes; see `bridge.functions.inside`."""
        key, arrays = self._key(call, specs)
        shapes = [
            _shape(x.shape, numpy.dtype(x.dtype)) if isinstance(x, Spec) else x for x in arrays
        ]
        traced = jax.eval_shape(partial(self._trace, key), *shapes)
        return traced.results, [Spec(tuple(x.shape), x.dtype.name) for x in traced.arrays]

    def random_state(self) -> bytes:
        """Return b"": random keys are arguments, so the function may be run again."""
        return b""

    @contextmanager
    def restored(self, state: bytes) -> Iterator[None]:
        """Return a context that changes nothing."""
        yield
