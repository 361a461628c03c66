# SPDX-License-Identifier: Apache-2.0
"""Activations, their gradients, and what works on rows: softmax, norms, distances."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(7)


def values(*shape: int, scale: float = 2.0) -> np.ndarray:
    return (_random.randn(*shape) * scale).astype(np.float32)


def apart(*shape: int) -> np.ndarray:
    """Values of 0.1 and more, or -0.1 and less: none where a slope changes."""
    x = values(*shape)
    return (x + 0.1 * np.where(x < 0, -1, 1)).astype(np.float32)


def probabilities(*shape: int) -> np.ndarray:
    return _random.uniform(0.02, 0.98, shape).astype(np.float32)


WIDE = np.array([-30, -10, -5, -1.5, -1, -0.5, -0.0, 0, 0.25, 0.5, 1, 2, 5, 6, 7, 20], np.float32)
FROM_OUTPUT = [
    "Relu",
    "ReluN",
    "LeakyRelu",
    "ThresholdedRelu",
    "Elu",
    "Selu",
    "Sigmoid",
    "HardSigmoid",
    "Tanh",
    "Softplus",
]
PLAIN = [*FROM_OUTPUT, "Softsign", "Swish", "Mish"]

# Lists, not generators: those would draw their random numbers later in Python 3.8.
# fmt: off
CASES: list[Case] = [
    *[case("values", name, WIDE) for name in PLAIN],
    *[case("of three dimensions", name, values(2, 3, 4)) for name in PLAIN],
    *[case("empty", name, np.zeros((0, 3), np.float32)) for name in PLAIN],
    *[case("0-d", name, np.array(1.5, np.float32)) for name in PLAIN],
    *[case("of double", name, values(3).astype(np.float64)) for name in PLAIN],
    *[case("in place", name, values(3, 4), outputs=["X0"]) for name in PLAIN],
    *[case("of two inputs", name, values(3), values(3)) for name in PLAIN[:2]],
    *[case("values", f"{name}Gradient", WIDE, values(16)) for name in FROM_OUTPUT],
    *[
        case("in place", f"{name}Gradient", WIDE, values(16), outputs=["X1"])
        for name in FROM_OUTPUT
    ],
    case("n", "ReluN", WIDE, n=2.5),
    case("n of zero", "ReluN", WIDE, n=0.0),
    case("n", "ReluNGradient", WIDE, values(16), n=2.5),
    case("alpha", "LeakyRelu", WIDE, alpha=0.3),
    case("alpha", "LeakyReluGradient", WIDE, values(16), alpha=0.3),
    case("alpha", "ThresholdedRelu", WIDE, alpha=0.25),
    case("alpha", "ThresholdedReluGradient", WIDE, values(16), alpha=0.25),
    case("alpha", "Elu", WIDE, alpha=0.5),
    case("alpha", "EluGradient", WIDE, values(16), alpha=0.5),
    case("alpha and scale", "Selu", WIDE, alpha=1.2, scale=0.8),
    case("alpha and scale", "SeluGradient", WIDE, values(16), alpha=1.2, scale=0.8),
    case("alpha and beta", "HardSigmoid", WIDE, alpha=0.1, beta=0.3),
    case("alpha", "HardSigmoidGradient", probabilities(9), values(9), alpha=0.1),
    case("values", "SoftsignGradient", WIDE, values(16)),
    case("values", "SwishGradient", WIDE, values(16), values(16)),
    case("values", "MishGradient", WIDE, values(16), values(16)),
    case("values", "Gelu", WIDE[3:]),
    case("fast", "Gelu", WIDE[3:], fast_gelu=True),
    case("of three dimensions", "Gelu", values(2, 3, 4, scale=1.0)),
    case("values", "GeluGradient", values(13), WIDE[3:]),
    case("fast", "GeluGradient", values(13), WIDE[3:], fast_gelu=True),
    case("values", "Logit", np.array([-1, 0, 1e-8, 0.1, 0.5, 0.9, 1, 2], np.float32)),
    case("eps", "Logit", np.array([-1, 0, 1e-8, 0.1, 0.5, 0.9, 1, 2], np.float32), eps=0.2),
    case("in place", "Logit", probabilities(5), outputs=["X0"]),
    case("values", "LogitGradient", np.array([0, 0.1, 0.5, 1], np.float32), values(4)),
    case("eps", "LogitGradient", np.array([0, 0.1, 0.5, 1], np.float32), values(4), eps=0.2),
    # With parameters.
    case("one slope", "PRelu", values(2, 3, 4), np.array([0.2], np.float32)),
    case("slopes", "PRelu", values(2, 3, 4, 2), values(3)),
    case("slopes of a matrix", "PRelu", values(4, 3), values(3)),
    case("slopes NHWC", "PRelu", values(2, 4, 2, 3), values(3), order="NHWC"),
    case("in place", "PRelu", values(2, 3, 4), values(3), outputs=["X0"]),
    case("slopes that are too many", "PRelu", values(2, 3, 4), values(4)),
    case("slopes", "PReluGradient", apart(2, 3, 4), values(2, 3, 4), apart(2, 3, 4), values(3),
         outputs=2),
    case("one slope", "PReluGradient", apart(2, 3, 4), values(2, 3, 4), apart(2, 3, 4), values(1),
         outputs=2),
    case("NHWC", "PReluGradient", apart(2, 4, 3), values(2, 4, 3), apart(2, 4, 3), values(3),
         outputs=2, order="NHWC"),
    case("last", "Glu", values(3, 4)),
    case("dim", "Glu", values(2, 6, 3), dim=1),
    case("odd", "Glu", values(2, 3)),
    # Rows.
    case("rows", "Softmax", values(3, 5)),
    case("more dimensions", "Softmax", values(2, 3, 4)),
    case("axis 0", "Softmax", values(2, 3, 4), axis=0),
    case("axis 2", "Softmax", values(2, 3, 4), axis=2),
    case("negative axis", "Softmax", values(2, 3, 4), axis=-1),
    case("axis out of range", "Softmax", values(2, 3), axis=3),
    case("large values", "Softmax", values(3, 5, scale=60.0)),
    case("empty", "Softmax", np.zeros((0, 3), np.float32)),
    case("one dimension", "Softmax", values(4)),
    case("in place", "Softmax", values(3, 4), outputs=["X0"]),
    case("of int", "Softmax", np.ones((2, 2), np.int32)),
    case("rows", "SoftmaxGradient", probabilities(3, 5), values(3, 5)),
    case("axis", "SoftmaxGradient", probabilities(2, 3, 4), values(2, 3, 4), axis=2),
    case("last", "Normalize", values(3, 4)),
    case("axis 0", "Normalize", values(3, 4, 2), axis=0),
    case("zeros", "Normalize", np.zeros((2, 3), np.float32)),
    case("last", "NormalizeL1", values(3, 4)),
    case("axis 1", "NormalizeL1", values(3, 4, 2), axis=1),
    case("last", "NormalizeGradient", values(3, 4), values(3, 4)),
    case("axis", "NormalizeGradient", values(3, 4, 2), values(3, 4, 2), axis=1),
    *[
        one
        for name in ("SquaredL2Distance", "L1Distance", "DotProduct", "CosineSimilarity")
        for one in (
            case("matrices", name, values(4, 3), values(4, 3)),
            case("three dimensions", name, values(2, 3, 4), values(2, 3, 4)),
            case("vectors", name, values(5), values(5)),
            case("zeros", name, np.zeros((2, 3), np.float32), values(2, 3)),
            case("empty", name, np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)),
            case("other shapes", name, values(2, 3), values(3, 2)),
            case("gradient", f"{name}Gradient", values(4, 3), values(4, 3), values(4), outputs=2),
            case(
                "gradient of more",
                f"{name}Gradient",
                values(2, 3, 2),
                values(2, 3, 2),
                values(2),
                outputs=2,
            ),
        )
    ],
    case("shorter Y", "DotProductWithPadding", values(3, 4), values(3, 2)),
    case("shorter X", "DotProductWithPadding", values(3, 2), values(3, 4), pad_value=1.5),
    case("replicated", "DotProductWithPadding", values(3, 2), values(3, 4), replicate=True),
    case("of one size", "DotProductWithPadding", values(3, 4), values(3, 4), pad_value=1.5),
    case("not divisible", "DotProductWithPadding", values(3, 4), values(3, 3), replicate=True),
    case("shorter Y", "DotProductWithPaddingGradient", values(3, 4), values(3, 2), values(3),
         outputs=2, pad_value=0.5),
    case("replicated", "DotProductWithPaddingGradient", values(3, 2), values(3, 4), values(3),
         outputs=2, replicate=True),
    case("p 2", "LpNorm", values(3, 4)),
    case("p 1", "LpNorm", values(3, 4), p=1),
    case("average", "LpNorm", values(3, 4), average=True),
    case("p 1, average", "LpNorm", values(3, 4), p=1, average=True),
    case("p 3", "LpNorm", values(3, 4), p=3),
    case("p 2", "LpNormGradient", apart(3, 4), values(1)),
    case("p 1", "LpNormGradient", apart(3, 4), values(1), p=1),
    case("average", "LpNormGradient", apart(3, 4), values(1), average=True),
]
# fmt: on
