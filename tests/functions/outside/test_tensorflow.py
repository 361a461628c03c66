# SPDX-License-Identifier: Apache-2.0
"""Wrapped functions under TensorFlow's tapes, in tf.function, in loops, in Keras."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from tests.functions.libraries import namespace
from tests.helpers.leaks import leaves_nothing, needs_proc

namespace("tensorflow")
import tensorflow as tf  # noqa: E402


def test_variables_get_gradients() -> None:
    square = bridge.wrap(lambda x: (x**2).sum(), "torch")
    v = tf.Variable([1.0, 2.0])

    def derivative() -> Any:
        with tf.GradientTape() as tape:
            loss = square(v)
        return tape.gradient(loss, v)

    assert derivative().numpy().tolist() == [2, 4]
    assert tf.function(derivative)().numpy().tolist() == [2, 4]


def test_a_loop_in_a_graph_keeps_each_step() -> None:
    runs = []
    double = bridge.wrap(lambda x: (runs.append(1), x * x)[1], "torch")

    @tf.function
    def derivative(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(3):
                y = double(y)
            loss = tf.reduce_sum(y)
        return tape.gradient(loss, x)

    x = tf.constant([2.0, 1.0])
    derivative(x)
    runs.clear()
    assert derivative(x).numpy().tolist() == [8 * 2.0**7, 8]
    assert len(runs) == 3


def test_sizes_that_a_graph_does_not_know_are_found_when_it_runs() -> None:
    run = bridge.wrap(lambda x: (x * x).sum(1), "torch")

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def derivative(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
            assert y.shape.as_list() == [None]
            loss = tf.reduce_sum(y)
        return tape.gradient(loss, x)

    for rows in (2, 4):
        assert derivative(tf.ones([rows, 3])).numpy().tolist() == [[2] * 3] * rows

    with pytest.raises(ValueError, match="number of dimensions of a tensor is not known"):
        tf.function(run, input_signature=[tf.TensorSpec(None)])(tf.ones(3))


def test_the_backward_pass_in_a_graph_has_the_same_random_numbers() -> None:
    drop = bridge.wrap(lambda x: torch.nn.functional.dropout(x, 0.5), "torch")

    @tf.function
    def both(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = drop(x)
        return y, tape.gradient(y, x)

    y, gradient = both(tf.ones(64))
    assert y.numpy().tolist() == gradient.numpy().tolist()


def test_integers_and_unused_results_have_no_gradient() -> None:
    run = bridge.wrap(lambda x, i, unused: (x[i], x * 2, torch.argmax(x)), "torch")
    x, i = tf.constant([1.0, 2.0]), tf.constant([0, 0])
    with tf.GradientTape() as tape:
        tape.watch([x, i])
        taken, _, _ = run(x, i, x + 1)
    assert tape.gradient(taken, x).numpy().tolist() == [2, 0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        taken, _, _ = run(tf.constant([1.0, 2.0]), i, x)
    assert tape.gradient(taken, x) is None


def test_a_graph_needs_no_second_derivative_for_a_first_one() -> None:
    import jax

    def backward(x: Any, cotangent: Any) -> Any:
        # a loop that JAX cannot differentiate backwards
        return (
            jax.lax.while_loop(lambda s: s[0] < 1, lambda s: (1, 2 * s[1]), (0, x * cotangent))[1],
        )

    square = jax.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), backward)
    wrapped = bridge.wrap(square, "jax")
    x = tf.constant([0.5, 1.0, 2.0])

    def gradient(x: Any, of: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(of(x))
        return tape.gradient(loss, x)

    first = tf.function(gradient)
    np.testing.assert_allclose(first(x, wrapped), first(x, tf.square), rtol=1e-6)

    @tf.function  # type: ignore[untyped-decorator]
    def second(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = gradient(x, wrapped)
        return tape.gradient(found, x)

    with pytest.raises(Exception, match="Reverse-mode"):
        second(x)


def test_numpy_inside_runs_and_refuses_to_be_differentiated() -> None:
    double = bridge.wrap(lambda x: x * 2, "numpy")
    x = tf.ones(3)
    with tf.GradientTape() as tape:
        assert double(x).numpy().tolist() == [2, 2, 2]
        tape.watch(x)
        with pytest.raises(BufferError, match=r"detach\(\)"):
            double(x)
    graph = tf.function(double)
    assert graph(x).numpy().tolist() == [2, 2, 2]
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(BufferError, match=r"detach\(\)"):
            tape.gradient(graph(x), x)


def test_forward_mode_is_refused() -> None:
    x = tf.ones(2)
    with (
        tf.autodiff.ForwardAccumulator(x, tf.ones(2)),
        pytest.raises(BufferError, match="forward mode"),
    ):
        bridge.wrap(lambda x: x * 2, "torch")(x)


def test_the_function_of_tensorflow_itself_is_converted_by_autograph() -> None:
    def sign(x: Any) -> Any:
        if tf.reduce_sum(x) > 0:
            return x
        return -x

    graph = tf.function(bridge.wrap(sign, "tensorflow"))
    assert graph(tf.constant([-1.0])).numpy().tolist() == [1]


def test_a_keras_layer_is_a_function_of_torch() -> None:
    layer = tf.keras.layers.Dense(2, activation="tanh")
    layer.build((None, 3))
    run = bridge.wrap(layer, "tensorflow")
    x = torch.rand(4, 3, requires_grad=True)
    y = run(x)
    np.testing.assert_allclose(y.detach(), layer(x.detach().numpy()), rtol=1e-5)
    (found,) = torch.autograd.grad(y.sum(), x)
    kernel, bias = (torch.tensor(w.numpy()) for w in layer.weights)
    (expected,) = torch.autograd.grad(torch.tanh(x @ kernel + bias).sum(), x)
    assert torch.allclose(found, expected, atol=1e-6)


def test_a_record_of_a_graph_goes_with_its_token() -> None:
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

    graph = tf.function(bridge.wrap(lambda x: Watched.apply(x), "torch"))
    graph(tf.ones(3))
    gc.collect()
    assert [there() for there in alive if there() is not None] == []


@needs_proc
def test_calls_leave_nothing() -> None:
    run = bridge.wrap(lambda x: torch.tanh(x).sum(), "torch")
    x = tf.ones(256)

    def derivative() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        return tape.gradient(y, x)

    graph = tf.function(derivative)

    def call() -> None:
        for _ in range(100):
            derivative()
            graph()

    call()
    leaves_nothing(call, "100 calls", nbytes=100 * 1024, blocks=100)
