# SPDX-License-Identifier: Apache-2.0
"""A function of JAX called from torch, over the bare function and its conversions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

import bridge
from tests.benchmarks.harness import Case, Effort, Row, loop, measured


def rows(effort: Effort) -> Iterator[Row]:
    """Measure a jitted product of 256 × 256 by 256 × 128, forward and both ways."""
    yield from measured(_cases(), effort)


def _cases() -> Iterator[Case]:
    try:
        import jax
    except ImportError:
        return
    function = jax.jit(lambda x, w: jax.numpy.tanh(x @ w))
    forward = jax.jit(lambda x, w: jax.vjp(function, x, w))
    backward = jax.jit(lambda pull, gradient: pull(gradient))
    wrapped = bridge.wrap(function, "jax")
    x, w, ones = torch.rand(256, 256), torch.rand(256, 128), torch.ones(256, 128)
    inputs = [x.clone().requires_grad_(), w.clone().requires_grad_()]

    def bare() -> Any:
        return bridge.to_torch(function(bridge.to_jax(x), bridge.to_jax(w)), writable=True)

    def bare_both_ways() -> Any:
        y, pull = forward(bridge.to_jax(x), bridge.to_jax(w))
        y = bridge.to_torch(y, writable=True)
        gradients = backward(pull, bridge.to_jax(ones))
        return y, [bridge.to_torch(gradient, writable=True) for gradient in gradients]

    def both_ways() -> Any:
        return torch.autograd.grad(wrapped(*inputs), inputs, ones)

    yield Case(
        "`wrap(f, 'jax')` from torch, a jitted product of 256 × 256 by 256 × 128",
        "the bare function and its conversions",
        1.5,
        1.3,
        loop("call(x, w)", call=wrapped, x=x, w=w),
        loop("call()", call=bare),
    )
    yield Case(
        "`wrap(f, 'jax')` from torch, the same product forward and backward",
        "`jax.vjp` and its conversions",
        2.0,
        1.5,
        loop("call()", call=both_ways),
        loop("call()", call=bare_both_ways),
    )
