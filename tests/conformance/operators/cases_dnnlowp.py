# SPDX-License-Identifier: Apache-2.0
"""Operators of the engine DNNLOWP whose bytes do not depend on the order of sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case

RANDOM = np.random.RandomState(21)
ENGINE = {"engine": "DNNLOWP"}


def floats(*sizes: int, scale: float = 1.0) -> np.ndarray:
    return (RANDOM.randn(*sizes) * scale).astype(np.float32)


def quantize(i: int, **arguments: Any) -> tuple:
    return ("Quantize", [f"X{i}"], [f"Q{i}"], {**ENGINE, **arguments})


DEQUANTIZE = ("Dequantize", ["R"], ["Y"], ENGINE)


def quantized(name: str, x: np.ndarray, **arguments: Any) -> Case:
    """Float32 as bytes, and back."""
    steps = [quantize(0, **arguments), ("Dequantize", ["Q0"], ["Y"], ENGINE)]
    return Case(f"Quantize {name}", {"X0": x}, steps, ["Y"])


def lowp(
    name: str, op_type: str, *inputs: Any, count: int = 1, followed_by: str = "", **arguments: Any
) -> Case:
    """An operator of which the first `count` inputs are quantized before."""
    feeds = {f"X{i}": x for i, x in enumerate(inputs)}
    names = [f"{'Q' if i < count else 'X'}{i}" for i in range(len(inputs))]
    steps = [quantize(i, followed_by=followed_by) for i in range(count)]
    steps.append((op_type, names, ["R"], {**ENGINE, **arguments}))
    floating = arguments.get("dequantize_output")
    steps += [] if floating else [DEQUANTIZE]
    return Case(f"{op_type} {name}", feeds, steps, ["R" if floating else "Y"])


IMAGE = floats(2, 4, 5, 5)

CASES = [
    quantized("both signs", floats(50)),
    quantized("positive", np.array([1, 2, 3], np.float32)),
    quantized("negative", np.array([-1, -2, -3], np.float32)),
    quantized("zeros", np.zeros((2, 3), np.float32)),
    quantized("nothing", np.zeros((0, 3), np.float32)),
    quantized("tiny", np.array([1e-44, 0], np.float32)),
    quantized("skewed", np.array([-0.001, 5, 7], np.float32)),
    quantized("wide", floats(100, scale=1e20)),
    quantized("given", floats(50), Y_scale=0.05, Y_zero_point=100),
    quantized("given scale", floats(50), Y_scale=0.05),
    quantized("symmetric", floats(50), preserve_activation_sparsity=1),
    quantized("symmetric positive", abs(floats(50)), preserve_activation_sparsity=1),
    quantized("for Tanh", floats(50), followed_by="Tanh"),
    quantized("for Sigmoid", floats(50), followed_by="Sigmoid"),
    quantized("for Relu", floats(50), followed_by="Relu"),
    lowp("plain", "Relu", IMAGE),
    lowp("plain", "Int8Relu", IMAGE),
    lowp("plain", "Tanh", floats(200, scale=2), followed_by="Tanh"),
    lowp("plain", "Sigmoid", floats(200, scale=3), followed_by="Sigmoid"),
    lowp("no table's scale", "Sigmoid", floats(200)),
    lowp("channels first", "ChannelShuffle", IMAGE, group=2, order="NCHW"),
    lowp("channels last", "ChannelShuffle", floats(2, 3, 3, 6), group=3, order="NHWC"),
    lowp("quantized", "MaxPool", IMAGE, kernel=3, stride=2, pad=1),
    lowp("floats", "MaxPool", IMAGE, count=0, kernel=2),
    lowp("dequantized", "MaxPool", IMAGE, kernel=2, dequantize_output=1),
    lowp("quantized", "Gather", floats(6, 3), np.array([0, 5, 2, 2])),
    lowp("floats", "Gather", floats(6, 3), np.array([0, 2]), count=0),
    lowp("dequantized floats", "Gather", floats(6, 3), np.array([1]), count=0, dequantize_output=1),
    lowp("not quantized", "Conv", IMAGE, floats(3, 4, 3, 3), floats(3), count=0, kernel=3),
    lowp("not quantized", "Sigmoid", IMAGE, count=0),
    lowp("not quantized", "Dequantize", IMAGE, count=0),
    Case(
        "Int8FCPackWeight by row",
        {"W": floats(4, 30), "B": floats(4)},
        [
            (
                "Int8FCPackWeight",
                ["W", "B"],
                ["P", "Q"],
                {**ENGINE, "in_scale": 0.03, "quantize_channelwise": 1},
            )
        ],
        [],
    ),
]
