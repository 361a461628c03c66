# SPDX-License-Identifier: Apache-2.0
"""Wrapped functions under torch's autograd, torch.compile and forward mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

import bridge

jax = pytest.importorskip("jax")
jnp = jax.numpy


def exponential() -> Any:
    return bridge.wrap(lambda x: jnp.exp(x), "jax")


def test_nothing_is_recorded_without_gradients() -> None:
    run, x = exponential(), torch.ones(3, requires_grad=True)
    assert run(x).requires_grad
    assert not run(x.detach()).requires_grad
    with torch.no_grad():
        assert not run(x).requires_grad


def test_only_floating_results_have_gradients() -> None:
    run = bridge.wrap(lambda x, i: (x[i], jnp.argmax(x), x.shape[0]), "jax")
    x = torch.arange(3.0, requires_grad=True)
    value, place, size = run(x, torch.tensor([2, 0, 2], dtype=torch.int32))
    assert value.requires_grad
    assert not place.requires_grad
    assert size == 3
    value.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 0, 2]


def test_a_change_before_the_backward_pass_is_an_error() -> None:
    x, w = torch.ones(64, requires_grad=True), torch.ones(64)
    for changed in (x, w):
        y = bridge.wrap(lambda x, w: (jnp.exp(x) * w).sum(), "jax")(x, w)
        with torch.no_grad():
            changed.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_arrays_of_others_may_change_before_the_backward_pass() -> None:
    x, w = torch.ones(64, requires_grad=True), np.ones(64, "float32")
    y = bridge.wrap(lambda x, w: (x * w).sum(), "jax")(x, w)
    w[:] = 5
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1] * 64


def test_a_result_may_change_before_the_backward_pass() -> None:
    x = torch.zeros(64, requires_grad=True)
    y = exponential()(x)
    y.detach().add_(5)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1] * 64


def test_gradients_have_memory_of_their_own() -> None:
    x, w = (torch.ones(64, requires_grad=True) for _ in range(2))
    run = bridge.wrap(lambda x, w: x + w, "jax")
    for _ in range(2):
        run(x, w).sum().backward()
    assert x.grad is not None
    assert w.grad is not None
    x.grad.add_(1)
    assert x.grad.tolist() == [3] * 64
    assert w.grad.tolist() == [2] * 64


def test_unused_results_take_no_part_in_gradients() -> None:
    run = bridge.wrap(lambda x: (x * 2, x * 3), "jax")
    x = torch.ones(2, requires_grad=True)
    run(x)[1].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]


def test_the_same_backward_pass_runs_twice() -> None:
    x = torch.zeros(3, requires_grad=True)
    y = exponential()(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2, 2]


def test_gradients_of_first_and_second_order_agree_with_differences() -> None:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        run = bridge.wrap(lambda x, w: jnp.tanh(x @ w), "jax")
        x = torch.rand(3, 2, dtype=torch.float64, requires_grad=True)
        w = torch.rand(2, 2, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(run, (x, w))
        assert torch.autograd.gradgradcheck(run, (x, w))
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, of its decompositions
def test_forward_mode_is_refused() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(3), torch.ones(3))
        with pytest.raises(BufferError, match="forward mode"):
            exponential()(dual)


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # Dynamo's own, where a graph breaks
def test_compiled_programs_break_their_graph_there() -> None:
    run, counted = exponential(), []

    def program(x: Any) -> Any:
        return run(x * 2).cos()

    def count(graph: Any, inputs: Any) -> Any:
        counted.append(graph)
        return graph.forward

    x = torch.rand(4, requires_grad=True)
    compiled = torch.compile(program, backend=count)
    expected = (x * 2).exp().cos()
    assert torch.allclose(compiled(x), expected, atol=1e-6)
    found = torch.autograd.grad(compiled(x).sum(), x)
    assert torch.allclose(found[0], torch.autograd.grad(expected.sum(), x)[0], atol=1e-5)
    assert len(counted) == 2
    torch.compiler.reset()


def test_a_jax_program_is_a_layer_of_a_torch_module() -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((3, 3), 0.1))
            self.run = bridge.wrap(lambda w, x: jnp.tanh(x @ w), "jax")

        def forward(self, x: Any) -> Any:
            return self.run(self.weight, x)

    model = torch.nn.Sequential(Layer(), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, losses = torch.eye(3), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = ((model(x) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
