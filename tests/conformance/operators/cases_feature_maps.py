# SPDX-License-Identifier: Apache-2.0
"""Features of several inputs merged, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import case, strings

DTYPES = [np.bool_, np.int32, np.int64, np.float32, np.float64]


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def flags(text: str) -> np.ndarray:
    return np.array([one == "x" for one in text])


def values(n: int, dtype: Any = np.float32, start: int = 0) -> np.ndarray:
    return np.arange(start, start + n).astype(dtype)


def text(n: int) -> np.ndarray:
    return strings(*[b"s%d" % i for i in range(n)])


def single_list(dtype: Any = np.float32) -> list[np.ndarray]:
    first = [i32(2, 9, 1), values(3, dtype), flags("x.x")]
    return [*first, i32(0, 2, 3), values(5, dtype, 10), flags("xxx")]


def single_map(keys: Any, dtype: Any) -> list[np.ndarray]:
    first = [i32(2, 9, 1), values(3, keys, 50), values(3, dtype), flags("x.x")]
    return [*first, i32(0, 2, 3), values(5, keys, 60), values(5, dtype, 10), flags("xxx")]


def multi_list(*columns: Any) -> list[np.ndarray]:
    first = [i32(2, 0, 1), i64(7, 8, 9), i32(1, 2, 0), *[one(3) for one in columns]]
    return [*first, i32(1, 1, 0), i64(5, 6), i32(2, 1), *[one(3) for one in columns]]


dense = np.arange(6, dtype=np.float32).reshape(2, 3)
dense_mask = np.stack([flags("x.x"), flags("...")])
# fmt: off
CASES = [
    case("simple", "MergeDenseFeatureTensors", dense, dense_mask, outputs=3, feature_ids=[3, 4, 5]),
    case("more ids", "MergeDenseFeatureTensors", dense.astype(np.int64), ~dense_mask, outputs=3,
         feature_ids=[3, 4, 5, 6]),
    case("no examples", "MergeDenseFeatureTensors", dense[:0], dense_mask[:0], outputs=3,
         feature_ids=[3, 4, 5]),
    case("strings", "MergeDenseFeatureTensors", text(6).reshape(2, 3), dense_mask, outputs=3,
         feature_ids=[3, 4, 5]),
    case("mask", "MergeDenseFeatureTensors", dense, dense, outputs=3, feature_ids=[3, 4, 5]),
    case("one input", "MergeDenseFeatureTensors", dense, outputs=3, feature_ids=[3, 4, 5]),
    *[
        case(
            np.dtype(dtype).name,
            "MergeSingleScalarFeatureTensors",
            values(3, dtype),
            flags("x.x"),
            values(3, dtype, 10),
            flags("xx."),
            outputs=3,
            feature_ids=[11, 12],
        )
        for dtype in DTYPES
    ],
    case("strings", "MergeSingleScalarFeatureTensors", text(2), flags("xx"), outputs=3,
         feature_ids=[11]),
    case("uint8", "MergeSingleScalarFeatureTensors", values(2, np.uint8), flags("xx"), outputs=3,
         feature_ids=[11]),
    case("types differ", "MergeSingleScalarFeatureTensors", values(2), flags("xx"),
         values(2, np.int32), flags("xx"), outputs=3, feature_ids=[11, 12]),
    case("many", "MergeSingleScalarFeatureTensors", *[values(2, np.int32), flags("xx")] * 6,
         outputs=3, feature_ids=list(range(6))),
    case("float", "MergeSingleListFeatureTensors", *single_list(), outputs=4, feature_ids=[11, 12]),
    case("bool", "MergeSingleListFeatureTensors", *single_list(np.bool_), outputs=4,
         feature_ids=[11, 12]),
    case("lengths of int64", "MergeSingleListFeatureTensors", i64(1, 1), values(2), flags("xx"),
         outputs=4, feature_ids=[11]),
    case("float", "MergeSingleMapFeatureTensors", *single_map(np.int64, np.float32), outputs=5,
         feature_ids=[11, 12]),
    case("double by int32", "MergeSingleMapFeatureTensors", *single_map(np.int32, np.float64),
         outputs=5, feature_ids=[11, 12]),
    case("simple", "MergeMultiScalarFeatureTensors", i32(2, 0, 1), i64(7, 8, 9), values(3),
         i32(1, 1, 0), i64(5, 6), values(2, start=10), outputs=3),
    case("strings", "MergeMultiScalarFeatureTensors", i32(2, 1), i64(7, 8, 9), text(3), outputs=3),
    case("short keys", "MergeMultiScalarFeatureTensors", i32(2, 1), i64(7, 8), values(3),
         outputs=3),
    case("float", "MergeMultiListFeatureTensors", *multi_list(values), outputs=4),
    case("strings", "MergeMultiListFeatureTensors", *multi_list(text), outputs=4),
    case("float", "MergeMultiMapFeatureTensors", *multi_list(values, values), outputs=5),
    case("strings", "MergeMultiMapFeatureTensors", *multi_list(text, values), outputs=5),
    case("three inputs", "MergeMultiMapFeatureTensors", *[i32(1)] * 6, outputs=5),
    case("simple", "MergeSingleScalarFeatureTensorsGradient", flags("x.x"), flags("xx."),
         values(4, start=1), outputs=2),
    case("strings", "MergeSingleScalarFeatureTensorsGradient", flags("x.x"), text(2)),
    *[
        case(
            "simple",
            f"MergeSingle{kind}FeatureTensorsGradient",
            i32(2, 9, 1),
            flags("x.x"),
            i32(0, 2, 3),
            flags("xxx"),
            values(8),
            outputs=2,
        )
        for kind in ("List", "Map")
    ],
    case("simple", "MergeMultiScalarFeatureTensorsGradient", i32(2, 0, 1), i32(1, 1, 0), values(5),
         outputs=2),
    *[
        case(
            "simple",
            f"MergeMulti{kind}FeatureTensorsGradient",
            i32(2, 0, 1),
            i32(1, 2, 0),
            i32(1, 1, 0),
            i32(2, 1),
            values(6, np.float64),
            outputs=2,
        )
        for kind in ("List", "Map")
    ],
    case("six pairs", "WeightedSum", *[values(3), values(1, start=2)] * 6),
]
# fmt: on
