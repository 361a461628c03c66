# SPDX-License-Identifier: Apache-2.0
"""Paddle inside: the function runs on detached tensors, under autograd of its own if recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import paddle

from bridge.annotation import Any
from bridge.functions.call import Call, Results
from bridge.functions.inside.eager import EagerInside
from bridge.functions.inside.zeros import outline_on_zeros
from bridge.functions.outcome import Spec


def arrive(x: Any, library: str, keep: bool = False) -> Any:
    """Return a Paddle tensor of the memory of `x`; a copy for JAX and TensorFlow."""
    from bridge.front import convert

    if library == "paddle":
        x = x if x.stop_gradient else x.detach()
        return x.clone() if keep else x
    if library == "torch" and x.requires_grad:
        x = x.detach()
    return convert(x, "paddle", copy=True) if keep else convert(x, "paddle")


class Inside(EagerInside):
    """A function of Paddle tensors."""

    library = paddle
    autograd = paddle
    arrive = staticmethod(arrive)

    @staticmethod
    def is_floating(tensor: Any) -> bool:
        """Return whether its elements are real floating-point numbers."""
        return bool(tensor.is_floating_point())

    @staticmethod
    def is_complex(tensor: Any) -> bool:
        """Return whether its elements are complex."""
        return bool(tensor.is_complex())

    @staticmethod
    def leaf(x: Any) -> Any:
        """Return a tensor of the memory of `x` that gradients are wanted of."""
        leaf = x.detach()
        leaf.stop_gradient = False
        return leaf

    @staticmethod
    def is_recorded(x: Any) -> bool:
        """Return whether autograd has recorded how `x` was computed."""
        return bool(x.is_floating_point() and not x.stop_gradient)

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
