# SPDX-License-Identifier: Apache-2.0
"""Locally connected layers, and layers of rows, images and sequences that no other group has."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(41)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def ints(*items: int) -> np.ndarray:
    return np.array(items, np.int32)


IMAGE = values(2, 4, 5, 4)
NHWC = values(2, 5, 4, 4)

# fmt: off
CASES: list[Case] = [
    case("plain", "LC", IMAGE, values(3, 2, 6, 4, 3, 3), values(3, 2, 6), kernel=3),
    case("no bias", "LC", IMAGE, values(3, 2, 6, 4, 3, 3), kernel=3),
    case("stride and pad", "LC", IMAGE, values(3, 2, 6, 4, 3, 3), values(3, 2, 6), kernel=3,
         stride=2, pad=1),
    case("NHWC", "LC", NHWC, values(3, 2, 6, 3, 3, 4), values(3, 2, 6), kernel=3, order="NHWC"),
    case("one dimension", "LC1D", values(2, 4, 7), values(5, 3, 4, 3), values(5, 3), kernels=[3]),
    case("two dimensions", "LC2D", IMAGE, values(3, 2, 6, 4, 3, 3), kernel=3),
    case("three dimensions", "LC3D", values(1, 2, 3, 3, 3), values(2, 2, 2, 3, 2, 2, 2, 2),
         kernels=[2] * 3),
    case("all", "LCGradient", IMAGE, values(3, 2, 6, 4, 3, 3), values(2, 6, 3, 2), outputs=3,
         kernel=3),
    case("no bias", "LCGradient", IMAGE, values(3, 2, 6, 4, 3, 3), values(2, 6, 3, 2), outputs=2,
         kernel=3, no_bias=True),
    case("NHWC", "LCGradient", NHWC, values(3, 2, 6, 3, 3, 4), values(2, 3, 2, 6), outputs=3,
         kernel=3, order="NHWC"),
    case("plain", "PackRNNSequence", values(6, 3), ints(2, 1, 3)),
    case("zero length", "PackRNNSequence", values(3, 2), ints(2, 0, 1)),
    case("int64", "PackRNNSequence", np.arange(12).reshape(6, 2), ints(2, 1, 3)),
    case("plain", "UnpackRNNSequence", values(3, 3, 2), ints(2, 1, 3)),
    case("plain", "BatchPermutation", values(4, 2, 3), ints(2, 0, 3, 1)),
    case("too few", "BatchPermutation", values(4, 2), ints(2, 0, 1)),
    case("plain", "BatchPermutationGradient", ints(2, 0, 3, 1), values(4, 2, 3)),
    case("plain", "SinusoidPositionEncoding", np.array([[1, 1], [5, 5], [40, 40]], np.int32),
         embedding_size=8),
    case("arguments", "SinusoidPositionEncoding", np.array([[2], [9]], np.int64), embedding_size=5,
         alpha=100.0, amplitude=2.0),
    case("float", "SquareRootDivide", values(3, 4), np.array([0, 4, 2.5], np.float32)),
    case("int", "SquareRootDivide", values(3, 4), ints(1, 0, 9)),
    case("negative", "SquareRootDivide", values(2, 4), ints(1, -1)),
    case("three", "SumRelu", values(3, 4), values(3, 4), values(3, 4)),
    case("one", "SumRelu", values(3, 4)),
    case("plain", "BatchBoxCox", np.abs(values(4, 3)), np.array([0.5, 0, 2], np.float32),
         np.array([0.1, 0.2, 0.3], np.float32)),
    case("double", "BatchBoxCox", np.abs(values(4, 3)).astype(np.float64), np.array([0.5, 0, 2]),
         np.array([0.1, 0.2, 0.3])),
    *[
        case(f"{h} {w} {args}", "RMACRegions", values(2, 1, h, w), **args)
        for h, w, args in (
            (7, 7, {}),
            (6, 11, {}),
            (20, 9, {"scales": 2}),
            (8, 15, {"overlap": 0.2}),
            (2, 2, {"scales": 5}),
        )
    ],
]
# fmt: on
