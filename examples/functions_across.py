# SPDX-License-Identifier: Apache-2.0
"""Functions of one framework in programs of another, with their gradients.

    python functions_across.py

A loss in JAX trains a model of torch; a module of torch runs inside jax.jit and jax.grad; a layer
of Keras is a function of torch; a net of Caffe2 is trained from JAX. What is not installed is left
out. Exits with 1 if a training does not succeed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

import torch

import bridge
from bridge import caffe2
from bridge.caffe2 import core, workspace

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def jax_loss_in_torch() -> tuple[float, float]:
    """Train a model of torch by a loss of JAX; return the first loss and the last."""
    import jax.numpy as jnp

    loss_of = bridge.wrap(lambda y, target: jnp.mean(jnp.log(jnp.cosh(y - target))), "jax")
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    x = torch.randn(32, 3)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = loss_of(model(x), x.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def torch_module_in_jax() -> tuple[float, float]:
    """Move an input to where a module of torch is small, by jax.jit of jax.grad."""
    import jax
    import jax.numpy as jnp

    module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    run = bridge.wrap(module, "torch")
    step = jax.jit(jax.value_and_grad(lambda x: (run(x) ** 2).mean()))
    x = jnp.ones((4, 3))
    losses = []
    for _ in range(100):
        loss, gradient = step(x)
        losses.append(float(loss))
        x = x - 4 * gradient
    return losses[0], losses[-1]


def keras_layer_in_torch() -> tuple[float, float]:
    """Move an input to where a layer of Keras is small, by torch's autograd."""
    import keras

    start = keras.initializers.GlorotUniform(seed=1)
    layer = keras.layers.Dense(2, activation="tanh", kernel_initializer=start)
    layer.build((None, 3))
    run = bridge.wrap(layer, "tensorflow")
    x = torch.ones(4, 3, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=1.0)
    losses = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = (run(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[0], losses[-1]


def caffe2_net_from_jax() -> tuple[float, float]:
    """Train a net of Caffe2 by jax.grad."""
    import jax
    import jax.numpy as jnp

    net = core.Net("small")
    net.FC(["x", "w", "b"], "h")
    net.Tanh("h", "y")
    workspace.FeedBlob("w", torch.full((1, 3), 0.1))
    workspace.FeedBlob("b", torch.zeros(1))
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])

    def call(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = torch.func.functional_call(module, parameters, (x,))
        return found

    run = bridge.wrap(call, "torch")
    x = jnp.asarray(torch.randn(32, 3).numpy())
    target = jnp.tanh(x @ jnp.asarray([[0.5], [-0.5], [0.3]]) + 0.2)
    step = jax.jit(jax.value_and_grad(lambda p: ((run(p, x) - target) ** 2).mean()))
    state = {name: parameter.detach() for name, parameter in module.named_parameters()}
    parameters: Any = bridge.to_jax(state, copy=True)
    losses = []
    for _ in range(100):
        loss, gradients = step(parameters)
        losses.append(float(loss))
        parameters = jax.tree.map(lambda p, g: p - 0.5 * g, parameters, gradients)
    return losses[0], losses[-1]


def main() -> int:
    """Run all, and print how far each loss went down."""
    torch.manual_seed(1)
    programs = [
        (jax_loss_in_torch, "jax"),
        (torch_module_in_jax, "jax"),
        (caffe2_net_from_jax, "jax"),
        (keras_layer_in_torch, "tensorflow"),
    ]
    status = 0
    for program, needs in programs:
        if importlib.util.find_spec(needs) is None:
            print(f"{program.__name__}: {needs} is not installed")
            continue
        first, last = program()
        print(f"{program.__name__}: {first:.4f} -> {last:.4f}")
        if not last < first / 4:
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
