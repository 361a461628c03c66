# SPDX-License-Identifier: Apache-2.0
"""torch inside: the function runs on detached tensors, under autograd of its own if recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from bridge.annotation import Any
from bridge.c10.type_meta import TypeMeta
from bridge.functions.call import Call, Results
from bridge.functions.inside.eager import EagerInside
from bridge.functions.inside.zeros import outline_on_zeros
from bridge.functions.outcome import Spec


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


class Inside(EagerInside):
    """A function of torch tensors."""

    library = torch
    autograd = torch.autograd
    arrive = staticmethod(arrive)

    @staticmethod
    def is_floating(tensor: Any) -> bool:
        """Return whether its elements are real floating-point numbers."""
        return bool(tensor.dtype.is_floating_point)

    @staticmethod
    def is_complex(tensor: Any) -> bool:
        """Return whether its elements are complex."""
        return bool(tensor.dtype.is_complex)

    @staticmethod
    def leaf(x: Any) -> Any:
        """Return a tensor of the memory of `x` that gradients are wanted of."""
        return x.detach().requires_grad_()

    @staticmethod
    def is_recorded(x: Any) -> bool:
        """Return whether autograd has recorded how `x` was computed."""
        return bool(x.requires_grad)

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
