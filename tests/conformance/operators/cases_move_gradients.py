# SPDX-License-Identifier: Apache-2.0
"""Gradients of slices, gathers, tiles and segments."""

from __future__ import annotations

import numpy as np

from .case import case

r = np.random.RandomState(8)
dy = r.randn(3, 4).astype(np.float32)
big = r.randn(2, 3, 4).astype(np.float32)
dbig = r.randn(2, 3, 4).astype(np.float32)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CASES = [
    case("arguments", "SliceGradient", big, dbig[:, 1:3], starts=[0, 1, 0], ends=[-1, 3, -1]),
    case("inputs", "SliceGradient", big, i32(0, 1, 0), i32(-1, 3, -1), dbig[:, 1:3]),
    case("simple", "ExpandGradient", dbig, big[:, :1]),
    case("more", "ExpandGradient", dbig, big[0, :1]),
    case("simple", "TileGradient", dbig, tiles=2, axis=2),
    case("first", "TileGradient", dbig, tiles=2, axis=0),
    case("inputs", "TileGradient", dbig, i32(3), i32(1)),
    case("simple", "BatchGatherGradient", big, i64(2, 0), dbig[:, :2]),
    case("twice", "BatchGatherGradient", big, i32(2, 2), dbig[:, :2]),
    case(
        "matched",
        "BatchGatherGradient",
        big,
        i64(2, 0, 1, 1).reshape(2, 2),
        dbig[:, :2],
        match_outer=1,
    ),
    *[
        case("simple", f"{op}{name}Gradient", dy, i32(0, 0, 1, 2, 2))
        for op in ("SortedSegment", "UnsortedSegment")
        for name in ("Sum", "Mean")
    ],
    *[case("simple", f"Lengths{name}Gradient", dy, i32(2, 0, 3)) for name in ("Sum", "Mean")],
]
