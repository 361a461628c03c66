# SPDX-License-Identifier: Apache-2.0
"""What the tests call each library by: a few functions inside, and derivatives outside."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import alone

if os.environ.get("BRIDGE_TEST_ALONE") == "paddle":
    pytest.importorskip("paddle")  # before TensorFlow

Outside = Callable[[Callable[..., Any], list[np.ndarray], bool], list[np.ndarray]]


def namespace(library: str) -> Any:
    """Return an object with ``tanh``, ``exp``, ``matmul``, ``sum`` of the library."""
    module = alone.importorskip("jax.numpy" if library == "jax" else library)
    if library == "tensorflow":
        return _Namespace(module.tanh, module.exp, module.matmul, module.reduce_sum)
    return _Namespace(module.tanh, module.exp, module.matmul, module.sum)


class _Namespace:
    def __init__(self, tanh: Any, exp: Any, matmul: Any, total: Any) -> None:
        self.tanh = tanh
        self.exp = exp
        self.matmul = matmul
        self.sum = total


# Functions of the library's own tensors: a name, and what makes it of a namespace. Each returns a
# number after which the tests differentiate.
FUNCTIONS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "product": lambda n: lambda x, w: n.sum(n.tanh(n.matmul(x, w))),
    "cubes": lambda n: lambda x, w: n.sum(x * x * x) + n.sum(w * w),
    "broadcast": lambda n: lambda x, w: n.sum(n.tanh(x[:, :3] * 2.0 + w[:1]) ** 2),
}


def by_torch(function: Callable[..., Any], arrays: list[np.ndarray], second: bool) -> Any:
    """Return value and derivatives, by torch's autograd."""
    torch = alone.importorskip("torch")
    inputs = [torch.tensor(array, requires_grad=True) for array in arrays]
    value = function(*inputs)
    found = torch.autograd.grad(value, inputs, create_graph=second)
    twice = torch.autograd.grad(sum((x**2).sum() for x in found), inputs) if second else ()
    return [x.detach().numpy() for x in (value, *found, *twice)]


def by_jax(function: Callable[..., Any], arrays: list[np.ndarray], second: bool) -> Any:
    """Return value and derivatives, by jax.grad."""
    jax = alone.importorskip("jax")
    inputs = [jax.numpy.asarray(array) for array in arrays]
    places = tuple(range(len(inputs)))
    first = jax.grad(function, places)

    def squares(*inputs: Any) -> Any:
        return sum((x**2).sum() for x in first(*inputs))

    twice = jax.grad(squares, places)(*inputs) if second else ()
    return [np.asarray(x) for x in (function(*inputs), *first(*inputs), *twice)]


def by_jitted_jax(function: Callable[..., Any], arrays: list[np.ndarray], second: bool) -> Any:
    """Return value and derivatives, by jax.grad under jit."""
    jax = alone.importorskip("jax")
    inputs = [jax.numpy.asarray(array) for array in arrays]
    places = tuple(range(len(inputs)))
    first = jax.grad(function, places)

    def squares(*inputs: Any) -> Any:
        return sum((x**2).sum() for x in first(*inputs))

    twice = jax.jit(jax.grad(squares, places))(*inputs) if second else ()
    value, found = jax.jit(jax.value_and_grad(function, places))(*inputs)
    return [np.asarray(x) for x in (value, *found, *twice)]


def by_tensorflow(function: Callable[..., Any], arrays: list[np.ndarray], second: bool) -> Any:
    """Return value and derivatives, by tapes."""
    tf = alone.importorskip("tensorflow")
    return [x.numpy() for x in _taped(tf, function, second)(*map(tf.constant, arrays))]


def by_graph(function: Callable[..., Any], arrays: list[np.ndarray], second: bool) -> Any:
    """Return value and derivatives, by tapes in a tf.function."""
    tf = alone.importorskip("tensorflow")
    run = tf.function(_taped(tf, function, second), autograph=False)
    return [x.numpy() for x in run(*map(tf.constant, arrays))]


def _taped(tf: Any, function: Callable[..., Any], second: bool) -> Callable[..., list[Any]]:
    def once(*inputs: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            value = function(*inputs)
        return [value, *tape.gradient(value, inputs)]

    def twice(*inputs: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            found = once(*inputs)
            squares = tf.add_n([tf.reduce_sum(x**2) for x in found[1:]])
        return [*found, *tape.gradient(squares, inputs)]

    return twice if second else once


def by_paddle(function: Callable[..., Any], arrays: list[np.ndarray], second: bool) -> Any:
    """Return value and derivatives, by paddle.grad."""
    paddle = alone.importorskip("paddle")
    inputs = [paddle.to_tensor(array, stop_gradient=False) for array in arrays]
    value = function(*inputs)
    found = paddle.grad(value, inputs, create_graph=second)
    twice = paddle.grad(sum((x**2).sum() for x in found), inputs) if second else []
    return [x.numpy() for x in (value, *found, *twice)]


OUTSIDE: dict[str, Outside] = {
    "torch": by_torch,
    "jax": by_jax,
    "jitted jax": by_jitted_jax,
    "tensorflow": by_tensorflow,
    "graph": by_graph,
    "paddle": by_paddle,
}
