# SPDX-License-Identifier: Apache-2.0
"""A wrapped function leaves nothing behind in 10,000 calls, with gradients and without.

Each test runs in a process of its own, whose memory no other test uses.
"""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from tests.functions.libraries import namespace
from tests.helpers.isolate import isolated
from tests.helpers.leaks import leaves_nothing, needs_proc

CALLS = 10_000
# 4 KiB a tensor: one that stays in two hundred calls is seen, and so is an object in ten.
NUMEL = 1024
SLACK_BYTES = 200 * 1024


def check(call: Callable[[], object], what: str) -> None:
    def run(times: int = CALLS) -> None:
        for _ in range(times):
            call()

    run(500)
    gc.collect()
    gc.freeze()  # what the frameworks made is not looked through again and again
    leaves_nothing(run, f"{CALLS:,} calls, {what}", nbytes=SLACK_BYTES, blocks=CALLS // 10)


def product_of(library: str) -> Callable[..., Any]:
    names = namespace(library)
    return bridge.wrap(lambda x, w: names.sum(names.tanh(x * w)), library)


@needs_proc
@pytest.mark.parametrize("library", ["jax", "numpy", "torch"])
@isolated
def test_calls_from_torch_leave_nothing(library: str) -> None:
    wrapped = product_of(library)
    x, w = torch.rand(NUMEL), torch.rand(NUMEL)
    check(lambda: wrapped(x, w), f"{library} from torch")


@needs_proc
@pytest.mark.parametrize("library", ["jax", "torch"])
@isolated
def test_forward_and_backward_from_torch_leave_nothing(library: str) -> None:
    wrapped = product_of(library)
    x, w = torch.rand(NUMEL, requires_grad=True), torch.rand(NUMEL, requires_grad=True)
    check(lambda: torch.autograd.grad(wrapped(x, w), (x, w)), f"{library} both ways from torch")


@needs_proc
@isolated
def test_a_forward_pass_whose_graph_is_dropped_leaves_nothing() -> None:
    wrapped = product_of("jax")
    x, w = torch.rand(NUMEL, requires_grad=True), torch.rand(NUMEL, requires_grad=True)
    check(lambda: wrapped(x, w), "jax from torch, without its backward pass")


@needs_proc
@pytest.mark.parametrize("library", ["torch", "numpy"])
@isolated
def test_calls_from_jax_leave_nothing(library: str) -> None:
    namespace("jax")
    import jax

    wrapped = jax.jit(product_of(library))
    x, w = jax.numpy.ones(NUMEL), jax.numpy.ones(NUMEL)
    check(lambda: wrapped(x, w).block_until_ready(), f"{library} from jitted JAX")


@needs_proc
@isolated
def test_gradients_in_jax_leave_nothing() -> None:
    namespace("jax")
    import jax

    derivative = jax.jit(jax.grad(product_of("torch"), argnums=(0, 1)))
    x, w = jax.numpy.ones(NUMEL), jax.numpy.ones(NUMEL)
    check(lambda: jax.block_until_ready(derivative(x, w)), "torch both ways from jitted JAX")


@needs_proc
@isolated
def test_calls_that_fail_leave_nothing() -> None:
    def fail(x: np.ndarray) -> None:
        raise ValueError("no")

    wrapped = bridge.wrap(fail, "numpy")
    x = torch.rand(NUMEL)

    def call() -> None:
        with pytest.raises(ValueError, match="no"):
            wrapped(x)

    check(call, "which fail")
