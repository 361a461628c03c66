# SPDX-License-Identifier: Apache-2.0
"""No elements, one dimension, no dimensions: sizes at which operators have a rule of their own."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(17)

i32, i64 = np.int32, np.int64


def f32(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def of(*values: object, dtype: type = np.float32) -> np.ndarray:
    return np.array(values, dtype)


def reductions() -> list[Case]:
    found = []
    for op_type in ("ReduceMax", "ReduceMin"):
        for dtype in (np.float32, np.float64, i32, i64):
            none = np.zeros((2, 0, 3), dtype)
            found.append(case(f"all of {np.dtype(dtype)}", op_type, none))
            found.append(case(f"some of {np.dtype(dtype)}", op_type, none, axes=[1], keepdims=0))
            found.append(case(f"none left of {np.dtype(dtype)}", op_type, none, axes=[2]))
    for axes in ([0], [1], [0, 1]):
        found.append(case(f"of nothing {axes}", "Moments", f32(0, 3), axes=axes, outputs=2))
    return found


def pools() -> list[Case]:
    """Windows said by `kernel`, which is of two dimensions, on images of one."""
    found = []
    for op_type in ("MaxPool", "MaxPool1D", "AveragePool", "AveragePool1D"):
        for name, args in {
            "plain": {"kernel": 3},
            "strides": {"kernel": 3, "stride": 2},
            "pads": {"kernel": 3, "pad": 1, "stride": 2},
            "legacy": {"kernel": 2, "stride": 2, "legacy_pad": 2},
            "last": {"kernel": 2, "order": "NHWC"},
        }.items():
            found.append(case(f"a line {name}", op_type, f32(2, 7, 8), **args))
    pads = {"kernels": [2, 2], "pads": [2, 0, 0, 0]}
    found.append(case("pads too large", "LpPool", f32(1, 1, 4, 4), **pads))
    found.append(case("no image", "LpPool", f32(0, 2, 4, 4), kernel=2))
    return found


def scatters() -> list[Case]:
    """Indices of smaller sizes than the data."""
    data = f32(2, 3, 4)
    return [
        case("fewer before", "Scatter", data, of([[0, 1, 2, 0]], dtype=i64), f32(1, 1, 4)),
        case("fewer after", "Scatter", data, of([[0, 2]], [[1, 0]], dtype=i64), f32(2, 1, 2)),
        case(
            "of the last", "Scatter", data, of([[1, 2]], [[0, 3]], dtype=i64), f32(2, 1, 2), axis=2
        ),
        case(
            "of the first", "Scatter", data, of([[1, 0], [1, 1]], dtype=i64), f32(1, 2, 2), axis=0
        ),
    ]


state, step = f32(1, 0, 3), of(1, dtype=i32)
none_of = np.zeros(0, i32)
# fmt: off
CASES = [
    *reductions(),
    *pools(),
    *scatters(),
    case("no channels", "GroupNorm", f32(2, 0, 4), f32(0), f32(0), group=1),
    case("no columns", "LRN", f32(2, 3, 4, 0), size=3, alpha=0.1, beta=0.75, outputs=2),
    case("no sequences", "LSTMUnit", state, state, f32(1, 0, 12), none_of, step, outputs=2),
    case("no sequences", "GRUUnit", state, f32(1, 0, 9), none_of, step),
    case("no columns", "UnpackSegments", of(1, 2, dtype=i32), f32(2, 3, 0)),
    case("no channels", "UpsampleBilinear", f32(2, 0, 3, 4), width_scale=2.0),
    case("to nothing", "UpsampleBilinear", f32(1, 2, 3, 2), width_scale=0.4),
    case("order is overlooked", "UpsampleBilinear", f32(1, 2, 3, 4), width_scale=2.0, order="NHWC"),
    case("a place", "Gather", f32(4), np.array(2, i64)),
    case("a place of rows", "Gather", f32(4, 3), np.array(1, i32)),
    case("more lengths", "SequenceMask", f32(2, 3, 3), of(1, 2, 3, 0, 1, 2, dtype=i32),
         mode="sequence"),
    case("too few lengths", "SequenceMask", f32(2, 3, 3), of(1, dtype=i32), mode="sequence"),
    case("no columns", "DotProductWithPadding", f32(3, 0), f32(3, 2)),
    case("nothing", "PairWiseLoss", f32(0), f32(0)),
    case("nothing of sessions", "PairWiseLoss", f32(0), f32(0), of(0, 0, dtype=i32)),
    case("no batches", "ColwiseMax", f32(0, 3, 4)),
    case("a line of channels", "PRelu", f32(5), f32(5), order="NHWC"),
    case("NaN", "Bucketize", of(np.nan, -3, 0.5, 9), boundaries=[-1.0, 0.0, 2.0]),
    case("after the end", "LearningRate", np.array([101]), base_lr=-1.0, policy="poly", power=0.5,
         max_iter=100),
    case("past and whole", "LearningRate", np.array([102]), base_lr=-1.0, policy="poly", power=2.0,
         max_iter=100),
    case("of nothing", "TopK", f32(0), k=3, outputs=3),
    case("of empty rows", "TopK", f32(2, 0), k=2, outputs=3),
    case("of no rows", "TopK", f32(0, 3), k=2, outputs=3),
    case("of empty columns", "TopK", f32(2, 0, 3), k=2, axis=1, outputs=3),
    case("of zeros", "ReduceL2Gradient", of(3, 5), of([0, 0, 0], [1, 0, 0]), of(0, 1), axes=[1]),
    case("a tie", "RMACRegions", f32(2, 1, 5, 9)),
    case("no rows", "ReduceFrontWeightedSum", f32(0, 3), f32(0)),
    case("NaN", "StumpFunc", of(np.nan, 1, 0), threshold=0.5, low_value=-1.0, high_value=2.0),
    case("NaN", "StumpFuncIndex", of(np.nan, 1, 0), threshold=0.5, outputs=2),
    *[
        case(
            f"a number from {axis}",
            op,
            f32(2, 3),
            f32(2, 3),
            f32(1),
            outputs=2,
            broadcast=1,
            axis=axis,
        )
        for op in ("AddGradient", "SubGradient", "MulGradient")
        for axis in (0, 1)
    ],
    case("a number after the end", "AddGradient", f32(2, 3), f32(2, 3), np.array(1.5, np.float32),
         outputs=2, broadcast=1, axis=2),
    case("infinite at 0", "AbsGradient", of(0, 1, -1), of(np.inf, np.inf, 2)),
    case("no rows", "SparseAdagrad", f32(0, 3), f32(0, 3), np.zeros(0, i64), f32(0, 3), of(0.1),
         outputs=["X0", "X1"]),
]
# fmt: on
