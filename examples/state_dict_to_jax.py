# SPDX-License-Identifier: Apache-2.0
"""A state dict from a safetensors file to JAX parameters and back, with tied weights still tied."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import safetensors.torch
import torch

import bridge


class TinyLM(torch.nn.Module):
    """A language model whose embedding and output layer have one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(16, 8)
        self.mix = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, 16, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> Any:
        """Return a score of each token that may follow."""
        return self.head(torch.tanh(self.mix(self.embed(tokens))))


def loss(parameters: Any, tokens: Any) -> Any:
    """Return how badly JAX predicts the next token with these parameters."""
    hidden = parameters["embed.weight"][tokens[:-1]]
    hidden = jnp.tanh(hidden @ parameters["mix.weight"].T + parameters["mix.bias"])
    scores = jax.nn.log_softmax(hidden @ parameters["head.weight"].T)
    return -jnp.take_along_axis(scores, tokens[1:, None], 1).mean()


def main() -> None:
    """Train a model of torch with JAX."""
    torch.manual_seed(0)
    path = str(Path(tempfile.mkdtemp()) / "model.safetensors")
    safetensors.torch.save_model(TinyLM(), path)  # which keeps one of the tied weights

    state = safetensors.torch.load_file(path)
    kept, missing = ("embed.weight", "head.weight")[:: 1 if "embed.weight" in state else -1]
    state[missing] = state[kept]  # one object under two names …
    parameters = bridge.to_jax(state)
    assert parameters["head.weight"] is parameters["embed.weight"]  # … is one array

    tokens = jnp.arange(9, dtype=jnp.int32) % 16
    value, gradients = jax.value_and_grad(loss)(parameters, tokens)
    tied = gradients[kept] + gradients[missing]
    gradients = {**gradients, kept: tied, missing: tied}
    trained = {name: parameters[name] - 0.1 * gradients[name] for name in parameters}
    trained[missing] = trained[kept]

    back = bridge.to_torch(trained, readonly=True)  # JAX's own memory, which torch must not write
    assert back["head.weight"] is back["embed.weight"]
    model = TinyLM()
    model.load_state_dict(back)  # a copy, into the memory of the module
    assert model.head.weight is model.embed.weight

    expected = torch.nn.functional.cross_entropy(model(torch.arange(8)), torch.arange(1, 9)).item()
    assert abs(float(loss(trained, tokens)) - expected) < 1e-5
    print(f"loss {float(value):.3f} in JAX, {expected:.3f} in torch after one step of JAX")


if __name__ == "__main__":
    main()
