# SPDX-License-Identifier: Apache-2.0
"""torch inside: the function runs on detached tensors, under autograd of its own if recorded."""

from __future__ import annotations

from contextlib import contextmanager

import torch

from bridge.c10.type_meta import TypeMeta
from bridge.functions.call import Results
from bridge.functions.inside.zeros import outline_on_zeros
from bridge.functions.outcome import Outcome, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from bridge.functions.call import Call


def arrive(x: Any, library: str, keep: bool = False) -> Any:
    """Return a torch tensor of the memory of `x`; read-only for JAX and TensorFlow."""
    from bridge.front import to_torch

    if library == "torch":
        x = x.detach() if x.requires_grad else x
        return x.clone() if keep else x
    if library == "paddle" and not x.stop_gradient:
        x = x.detach()
    if keep:
        return to_torch(x, copy=True)
    return to_torch(x, readonly=library in ("jax", "tensorflow"))


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
            if cotangent is not None and result is not None and result.requires_grad
        ]
        if not pairs or not wanted:
            return [None] * len(wanted)
        return list(
            torch.autograd.grad(
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
        leaves = [None if x is None else x.detach().requires_grad_() for x in cotangents]
        with torch.enable_grad():
            gradients = self._pull(leaves, list(range(len(self.inputs))), True)
        node = _Node([*self.inputs, *(x for x in leaves if x is not None)], gradients)
        return [None if x is None else x.detach() for x in gradients], node


class Inside:
    """A function of torch tensors."""

    own = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.direct = function

    arrive = staticmethod(arrive)

    @staticmethod
    def is_floating(tensor: Any) -> bool:
        """Return whether its elements are real floating-point numbers."""
        return bool(tensor.dtype.is_floating_point)

    @staticmethod
    def is_complex(tensor: Any) -> bool:
        """Return whether its elements are complex."""
        return bool(tensor.dtype.is_complex)

    def _called(self, call: Call, tensors: list[Any]) -> tuple[Results, list[Any]]:
        args, kwargs = call.arguments(tensors)
        results, found = Results.of(self.function(*args, **kwargs))
        return results, [x if isinstance(x, torch.Tensor) else arrive(x, "", True) for x in found]

    def run(self, call: Call, tensors: list[Any]) -> Outcome:
        """Run the function; see `bridge.functions.inside`."""
        results, found = self._called(call, tensors)
        return Outcome(results, [x.detach() for x in found])

    def record(self, call: Call, tensors: list[Any], floats: list[int]) -> Outcome:
        """Run the function and keep its derivatives; see `bridge.functions.inside`."""
        tensors = list(tensors)
        for number in floats:
            # (a view of its own, which no other call has)
            tensors[number] = tensors[number].detach().requires_grad_()
        with torch.enable_grad():
            results, found = self._called(call, tensors)
        node = _Node([tensors[number] for number in floats], found)
        return Outcome(
            results,
            [x.detach() for x in found],
            node,
            [x.requires_grad for x in found],
        )

    def outline(self, call: Call, specs: list[Any]) -> tuple[Results, list[Spec]]:
        """Return the results of the function for shapes; see `bridge.functions.inside`."""
        from torch._subclasses.fake_tensor import (
            DataDependentOutputException,
            DynamicOutputShapeException,
            FakeTensorMode,
        )

        with self.restored(self.random_state()):
            try:
                with FakeTensorMode(allow_non_fake_inputs=True):
                    results, found = self._called(call, [_empty(spec) for spec in specs])
                    return results, [
                        Spec(tuple(x.shape), TypeMeta.Make(x.dtype).name) for x in found
                    ]
            except DataDependentOutputException:
                return outline_on_zeros(self, call, specs)
            except DynamicOutputShapeException as error:
                raise ValueError(
                    f"The shape of a result depends on values, by {error}. Under jit and vmap, and "
                    "in tf.function, shapes may not."
                ) from error

    def random_state(self) -> bytes:
        """Return the state of torch's random numbers, on the host and on the current device."""
        state = torch.get_rng_state().numpy().tobytes()
        if torch.cuda.is_available() and _has_cuda():
            state += torch.cuda.get_rng_state().numpy().tobytes()
        return state

    @contextmanager
    def restored(self, state: bytes) -> Iterator[None]:
        """Run with the random numbers in the given state, and set the present one again."""
        now = self.random_state()
        _set_state(state)
        try:
            yield
        finally:
            _set_state(now)


def _has_cuda() -> bool:
    is_initialized: Any = torch.cuda.is_initialized
    return bool(is_initialized())


def _empty(spec: Any) -> Any:
    if not isinstance(spec, Spec):
        return spec
    dtype = TypeMeta.Make(spec.dtype).torch
    assert dtype is not None
    return torch.empty(spec.shape, dtype=dtype)


def _set_state(state: bytes) -> None:
    split = torch.get_rng_state().numel()
    torch.set_rng_state(torch.frombuffer(bytearray(state[:split]), dtype=torch.uint8))
    if state[split:]:
        torch.cuda.set_rng_state(torch.frombuffer(bytearray(state[split:]), dtype=torch.uint8))
