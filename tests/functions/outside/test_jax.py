# SPDX-License-Identifier: Apache-2.0
"""Wrapped functions under JAX's transformations: jit, vmap, scan, checkpoint, grad of grad."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge.functions import pass_records as records

jax = pytest.importorskip("jax")
jnp = jax.numpy


class Counted:
    """A torch function of two matrices that counts its runs, and the same in JAX."""

    def __init__(self) -> None:
        self.runs = 0
        self.wrapped = bridge.wrap(self._run, "torch")

    def _run(self, x: Any, w: Any) -> Any:
        self.runs += 1
        return {"y": torch.tanh(x @ w), "n": 3, "best": torch.argmax(x).int()}

    def loss(self, x: Any, w: Any) -> Any:
        return (self.wrapped(x, w)["y"] ** 2).sum()

    @staticmethod
    def same(x: Any, w: Any) -> Any:
        """Return what `loss` returns, by JAX alone."""
        return (jnp.tanh(x @ w) ** 2).sum()


def matrices() -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    return (
        jnp.asarray(random.uniform(-1, 1, (4, 5)).astype("float32")),
        jnp.asarray(random.uniform(-1, 1, (5, 3)).astype("float32")),
    )


def close(found: Any, expected: Any) -> None:
    for mine, its in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, its, rtol=2e-5, atol=2e-5)


def scanned(loss: Any) -> Any:
    """Return the sum of four losses, each at a place that depends on those before."""

    def total(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda s, _: (s + loss(x + 0.1 * s, w), None), 0.0, None, length=4)[0]

    return total


def squared_gradient(loss: Any) -> Any:
    return lambda x, w: (jax.grad(loss)(x, w) ** 2).sum()


# What is done to the loss, and how often the torch function runs for it, that for shapes included.
TRANSFORMATIONS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "value": (lambda f: f, 1),
    "grad": (lambda f: jax.grad(f, (0, 1)), 1),
    "jit": (jax.jit, 2),
    "jit of grad": (lambda f: jax.jit(jax.grad(f, (0, 1))), 2),
    "grad of jit": (lambda f: jax.grad(jax.jit(f), (0, 1)), 2),
    "vmap": (lambda f: lambda x, w: jax.vmap(f, (0, None))(jnp.stack([x, x + 1]), w), 3),
    "vmap of grad": (
        lambda f: lambda x, w: jax.vmap(jax.grad(f), (0, None))(jnp.stack([x, x + 1]), w),
        3,
    ),
    "scan": (lambda f: jax.grad(scanned(f)), 5),
    "jit of scan": (lambda f: jax.jit(jax.grad(scanned(f))), 5),
    "second": (lambda f: jax.grad(squared_gradient(f), (0, 1)), 1),
    "jit of second": (lambda f: jax.jit(jax.grad(squared_gradient(f), (0, 1))), 2),
    "hessian": (lambda f: jax.jacrev(jax.jacrev(f)), 2),
    "third": (lambda f: jax.grad(squared_gradient(squared_gradient(f)), (0, 1)), 1),
    "checkpoint": (lambda f: jax.grad(jax.checkpoint(f)), 3),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_a_wrapped_function_transforms_as_a_function_of_jax(name: str) -> None:
    transform, runs = TRANSFORMATIONS[name]
    counted, (x, w) = Counted(), matrices()
    with jax.default_matmul_precision("highest"):
        expected = transform(counted.same)(x, w)
        scale = max(float(abs(leaf).max()) for leaf in jax.tree.leaves(expected))
        found = transform(counted.loss)(x, w)
    close(
        jax.tree.map(lambda leaf: leaf / scale, found), jax.tree.map(lambda y: y / scale, expected)
    )
    assert counted.runs <= runs


def test_shapes_are_found_once() -> None:
    counted, (x, w) = Counted(), matrices()
    derivative = jax.jit(jax.grad(counted.loss))
    derivative(x, w)
    counted.runs = 0
    derivative(x, w)
    assert counted.runs == 1
    jax.vmap(counted.loss, (0, None))(jnp.stack([x, x]), w)
    assert counted.runs == 3


def test_the_backward_pass_has_the_random_numbers_of_the_forward_pass() -> None:
    drop = bridge.wrap(lambda x: torch.nn.functional.dropout(x, 0.5), "torch")

    def total(x: Any) -> Any:
        y = drop(x)
        return y.sum(), y

    x = jnp.ones(64)
    for run in (jax.grad(total, has_aux=True), jax.jit(jax.grad(total, has_aux=True))):
        gradient, y = run(x)
        assert gradient.tolist() == y.tolist()
        assert 0 < float(y.sum()) < 128
    value, pull = jax.vjp(jax.jit(drop), x)
    assert pull(x)[0].tolist() == value.tolist()


def test_a_lost_record_is_made_again_with_the_same_random_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records, "MOST", 1)
    drop = bridge.wrap(lambda x: torch.nn.functional.dropout(x, 0.5), "torch")

    def total(x: Any) -> Any:
        first, second = drop(x), drop(2 * x)
        return (first + second).sum(), (first, second)

    before = torch.get_rng_state()
    gradient, (first, second) = jax.jit(jax.grad(total, has_aux=True))(jnp.ones(64))
    assert gradient.tolist() == (first + second).tolist()
    assert not torch.equal(torch.get_rng_state(), before)


def test_shapes_are_found_without_random_numbers_and_side_effects_on_values() -> None:
    norm = torch.nn.BatchNorm1d(3)
    run = bridge.wrap(norm, "torch")
    before = torch.get_rng_state()
    jax.eval_shape(run, jnp.ones((4, 3)))
    assert torch.equal(torch.get_rng_state(), before)
    assert norm.running_mean.tolist() == [0, 0, 0]
    jax.jit(run)(jnp.ones((4, 3)))
    assert norm.running_mean.tolist() != [0, 0, 0]


def test_shapes_and_numbers_that_depend_on_values_are_refused() -> None:
    x = jnp.asarray([1.0, -1.0])
    with pytest.raises(ValueError, match="shape of a result depends on values"):
        jax.jit(bridge.wrap(lambda x: x[x > 0], "torch"))(x)
    positive = bridge.wrap(lambda x: x[x > 0], "numpy")
    assert positive(x).tolist() == [1]
    with pytest.raises(ValueError, match="seem to depend on values"):
        jax.jit(positive)(x)
    not_negative = bridge.wrap(lambda x: x[x >= 0], "numpy")
    with pytest.raises(Exception, match="Shapes may not depend on values"):
        jax.block_until_ready(jax.jit(not_negative)(x))
    count = bridge.wrap(lambda x: (x, float(x.sum()) + 1), "numpy")
    with pytest.raises(Exception, match="may not depend on values"):
        jax.block_until_ready(jax.jit(lambda x: count(x)[0])(x + 1))


def test_python_numbers_are_differentiated_too() -> None:
    assert float(jax.grad(bridge.wrap(lambda x: x**3, "torch"))(2.0)) == 12


def test_forward_mode_is_an_error_that_says_so() -> None:
    counted, (x, w) = Counted(), matrices()
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(counted.loss, (x, w), (x, w))


def test_a_jax_function_inside_has_all_of_jax() -> None:
    x, w = matrices()
    wrapped = bridge.wrap(Counted.same, "jax")
    close(jax.jvp(wrapped, (x, w), (x, w)), jax.jvp(Counted.same, (x, w), (x, w)))
    close(jax.hessian(wrapped)(x, w), jax.hessian(Counted.same)(x, w))


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f))])
def test_numpy_inside_refuses_to_be_differentiated(transform: Any) -> None:
    total = bridge.wrap(lambda x: x.sum(), "numpy")
    x = jnp.ones(3)
    for run in (jax.grad(transform(total)), transform(jax.grad(total))):
        with pytest.raises(BufferError, match=r"numpy has no gradients.*detach\(\)"):
            run(x)
    assert float(jax.jit(total)(x)) == 3
    assert float(jax.grad(lambda y: y * total(x))(2.0)) == 3
    stopped = jax.grad(lambda x: (x + total(jax.lax.stop_gradient(x))).sum())
    assert stopped(x).tolist() == [1, 1, 1]


def test_integers_and_unused_arguments_have_no_gradient() -> None:
    pick = bridge.wrap(lambda x, i, unused: x[i].sum(), "torch")
    x, i = jnp.arange(4.0), jnp.asarray([0, 2], "int32")
    found = jax.grad(pick, (0, 2))(x, i, x)
    assert [y.tolist() for y in found] == [[1, 0, 1, 0], [0, 0, 0, 0]]


def test_complex_results_have_no_gradient() -> None:
    run = bridge.wrap(lambda x: torch.fft.fft(x), "torch")
    close(run(jnp.arange(4.0)), jnp.fft.fft(jnp.arange(4.0)))
    with pytest.raises(BufferError, match=r"complex.*detach\(\)"):
        jax.grad(lambda x: abs(run(x)).sum())(jnp.arange(4.0))


def test_other_tensors_are_constants_of_the_graph() -> None:
    w = torch.full((3,), 2.0)
    run = bridge.wrap(lambda x, w: (x * w).sum(), "torch")
    derivative = jax.jit(jax.grad(lambda x: run(x, w)))
    assert derivative(jnp.ones(3)).tolist() == [2, 2, 2]
    w.fill_(5)  # JAX has compiled the value
    assert derivative(jnp.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(BufferError, match=r"detach\(\)"):
        run(jnp.ones(3), w.clone().requires_grad_())


def test_a_record_lives_as_long_as_its_backward_pass() -> None:
    alive = []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            kept = torch.ones(3)
            alive.append(weakref.ref(kept))
            ctx.kept = kept
            return x * kept

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * ctx.kept

    run = bridge.wrap(lambda x: Watched.apply(x).sum(), "torch")
    _, pull = jax.vjp(run, jnp.ones(3))
    gc.collect()
    assert alive[0]() is not None
    pull(jnp.ones(()))
    pull(jnp.ones(()))
    del pull
    gc.collect()
    assert alive[0]() is None


def test_threads_differentiate_at_once() -> None:
    run = bridge.wrap(lambda x: torch.tanh(x).sum(), "torch")
    derivative = jax.jit(jax.grad(run))

    def work(start: float) -> None:
        for step in range(20):
            x = jnp.full((3,), start + 0.01 * step)
            close(derivative(x), 1 - jnp.tanh(x) ** 2)
            close(jax.grad(run)(x), 1 - jnp.tanh(x) ** 2)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, [0.0, 0.2, 0.4, 0.6]))
