# SPDX-License-Identifier: Apache-2.0
"""Inputs without elements and of rarer types, where operators have a rule of their own."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(41)


def f32(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


x = f32(3, 4)
row = f32(4)
none = f32(0, 4)
narrow = f32(3, 0)
whole = (9 * x).astype(np.int32)
image = f32(2, 0, 4, 5)
region = np.array([[0, 0, 0, 3, 3], [1, 1, 1, 4, 4]], np.float32)
BINS = {"pooled_h": 3, "pooled_w": 2}
CASES = [
    *[
        case(f"whole {op_type}", op_type, whole, whole, (9 * row).astype(np.int32), outputs=2)
        for op_type in ("AddGradient", "SubGradient", "MulGradient")
    ],
    *[
        case(np.dtype(dtype).name, "SumRelu", x.astype(dtype), -2 * x.astype(dtype))
        for dtype in (np.float64, np.int32, np.int64)
    ],
    case("two types", "SumRelu", x, whole),
    *[
        case(np.dtype(dtype).name, "CubeGradient", whole.astype(dtype), whole.astype(dtype))
        for dtype in (np.int32, np.int64)
    ],
    case("no rows", "BatchBoxCox", none, row, row),
    case("no columns", "BatchBoxCox", narrow, row[:0], row[:0]),
    *[
        case(f"no images {np.dtype(dtype).name}", "RMACRegions", f32(0, 3, 4, 5).astype(dtype))
        for dtype in (np.float32, np.int32)
    ],
    case("no channels", "RMACRegions", image),
    case("of int64", "RMACRegions", np.zeros((2, 3, 8, 6), np.int64)),
    case("empty", "ClipTensorByScaling", none, f32(1), threshold=1.0),
    case("int32", "KeySplit", i32(0, 1), categorical_limit=2, outputs=2),
    case("no rows", "DotProductWithPadding", none, f32(0, 2)),
    case("no rows", "DotProductWithPaddingGradient", none, f32(0, 2), f32(0), outputs=2),
    case("no rows", "DotProduct", none, none),
    case("no columns", "DotProduct", narrow, narrow),
    case("no columns", "SquaredL2Distance", narrow, narrow),
    case("no columns", "L1Distance", narrow, narrow),
    case("no columns", "CosineSimilarity", narrow, narrow),
    case("no columns", "FCGradient", narrow, f32(5, 0), f32(3, 5), outputs=3),
    case("no rows", "FCGradient", none, f32(5, 4), f32(0, 5), outputs=3),
    case("no columns", "FCTransposedGradient", narrow, f32(0, 5), f32(3, 5), outputs=2),
    case("no columns", "LayerNorm", narrow, outputs=3),
    case("no columns by epsilon", "LayerNorm", narrow, outputs=3, epsilon=0.25),
    case("no channels", "RoIAlign", image, region, **BINS),
    case("no channels", "RoIPool", image, region, is_test=1, **BINS),
    case("bool", "GatherPadding", x > 0, i32(1, 2), padding_width=1),
    case("a number", "IndexHash", np.array(5, np.int32), modulo=3),
    case(
        "no rows",
        "NGramFromCategorical",
        none,
        col_ids=[0],
        categorical_limits=[2],
        vals=[1, 2],
    ),
    case("cube", "FloatToFused4BitFakeRowwiseQuantized", f32(2, 3, 4)),
    case("plain", "C10LayerNorm_DontUseThisOpYet", x, outputs=3),
    case(
        "affine",
        "C10LayerNorm_DontUseThisOpYet",
        x,
        row,
        row,
        outputs=3,
        epsilon=0.1,
        elementwise_affine=True,
    ),
    case("in place", "CopyRowsToTensorGradient", x, outputs=["X0"]),
    case("list", "CopyRowsToTensorGradient", row),
    Case(
        "atomic iter",
        {"I": np.array([4])},
        [("CreateMutex", [], ["M"], {}), ("AtomicIter", ["M", "I"], ["I"], {})],
        ["I"],
    ),
    Case("free", {"A": x, "B": row}, [("Free", ["A", "B"], ["A", "B"], {})]),
    case("gradient of a list", "MomentumSGD", x.reshape(-1), x, row[:1], outputs=2),
    case("gradient of a list", "Adagrad", x, x * x, x.reshape(-1), row[:1], outputs=2),
    case(
        "gradient of a list", "Adam", x, x, x * x, x.reshape(-1), row[:1], np.array([3]), outputs=3
    ),
    case("moments of a list", "RmsProp", x, (x * x).reshape(-1), x, row[:1], outputs=3),
]
