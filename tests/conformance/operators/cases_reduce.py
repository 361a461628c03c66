# SPDX-License-Identifier: Apache-2.0
"""Sums, means and extremes over dimensions."""

from __future__ import annotations

import numpy as np

from .case import case

r = np.random.RandomState(3)
x = r.randn(3, 4, 5).astype(np.float32)
matrix = r.randn(4, 6).astype(np.float32)
integers = r.randint(-50, 50, (3, 4, 5))
ties = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [-1, -5, -5, -1]], np.float32)
empty = np.zeros((0, 3), np.float32)
inner = np.zeros((3, 0), np.float32)
scalar = np.array(2.5, np.float32)
AXES = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2"]
DIMS = ["ReduceFrontSum", "ReduceFrontMean", "ReduceFrontMax", "ReduceBackSum", "ReduceBackMean",
        "ReduceBackMax"]  # fmt: skip


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


CASES = [
    *[
        made
        for op in AXES
        for made in (
            case("all", op, x),
            case("all dropped", op, x, keepdims=0),
            case("first", op, x, axes=[0]),
            case("first dropped", op, x, axes=[0], keepdims=0),
            case("last", op, x, axes=[-1], keepdims=False),
            case("two", op, x, axes=[0, 2], keepdims=0),
            case("two kept", op, x, axes=[2, 1], keepdims=1),
            case("every", op, x, axes=[0, 1, 2], keepdims=0),
            case("vector", op, x[0, 0]),
            case("0-d", op, scalar),
            case("int32", op, integers.astype(np.int32), axes=[1]),
            case("int64", op, integers, axes=[1]),
            case("double", op, x.astype(np.float64), axes=[1]),
            case("empty", op, empty, axes=[1]),
            case("bool", op, integers > 0, axes=[1]),
            case("too far", op, x, axes=[3]),
        )
    ],
    *[case("of nothing", op, empty, axes=[0]) for op in ("ReduceSum", "ReduceL1")],
    *[
        made
        for op in DIMS
        for made in (
            case("default", op, x),
            case("two", op, x, num_reduce_dim=2),
            case("all", op, x, num_reduce_dim=3),
            case("none", op, x, num_reduce_dim=0),
            case("lengths", op, matrix,
                 i32(*([2, 1, 4, 3, 1, 4] if "Front" in op else [6, 1, 3, 2]))),
            case("zero length", op, matrix,
                 i32(*([2, 0, 4, 3, 1, 4] if "Front" in op else [6, 0, 3, 2]))),
            case("wrong lengths", op, matrix, i32(1, 2)),
            case("lengths and two", op, x, i32(1, 2, 3), num_reduce_dim=2),
            case("empty", op, empty),
            case("empty inside", op, inner),
            case("int32", op, integers.astype(np.int32)),
            case("int64", op, integers),
            case("double", op, x.astype(np.float64)),
            case("vector", op, x[0, 0]),
            case("too many", op, x, num_reduce_dim=4),
        )
    ],
    case("simple", "RowwiseMax", x),
    case("matrix", "RowwiseMax", matrix),
    case("simple", "ColwiseMax", x),
    case("matrix", "ColwiseMax", matrix),
    case("simple", "SumElements", x),
    case("average", "SumElements", x, average=1),
    case("empty", "SumElements", empty),
    case("empty average", "SumElements", empty, average=1),
    case("0-d", "SumElements", scalar),
    case("double", "SumElements", x.astype(np.float64)),
    case("int32", "SumElements", integers.astype(np.int32)),
    case("simple", "SumElementsInt", integers.astype(np.int32)),
    case("floats", "SumElementsInt", x),
    case("simple", "SumSqrElements", x),
    case("average", "SumSqrElements", x, average=1),
    case("double", "SumSqrElements", x.astype(np.float64), average=1),
    case("empty", "SumSqrElements", empty),
    case("simple", "ReduceTailSum", x),
    case("vector", "ReduceTailSum", x[0, 0]),
    case("empty", "ReduceTailSum", inner),
    case("simple", "RowMul", x, x[:, 0, 0]),
    case("matrix", "RowMul", matrix, matrix[:, 0]),
    case("wrong", "RowMul", matrix, matrix[0]),
    *[
        made
        for op in ("ArgMax", "ArgMin")
        for made in (
            case("default", op, x),
            case("axis 0", op, x, axis=0),
            case("axis 1", op, x, axis=1),
            case("dropped", op, x, axis=1, keepdims=0),
            case("default dropped", op, x, keepdims=False),
            case("ties", op, ties),
            case("ties axis 0", op, ties, axis=0),
            case("int32", op, integers.astype(np.int32), axis=1),
            case("int64", op, integers, axis=0),
            case("double", op, x.astype(np.float64), axis=2),
            case("vector", op, x[0, 0]),
            case("vector dropped", op, x[0, 0], keepdims=0),
            case("minus two", op, x, axis=-2),
            case("too far", op, x, axis=3),
            case("0-d", op, scalar),
            case("uint8", op, integers.astype(np.uint8)),
            case("empty", op, empty),
        )
    ],
]  # fmt: skip
