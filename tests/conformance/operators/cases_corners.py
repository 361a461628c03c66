# SPDX-License-Identifier: Apache-2.0
"""Rare sizes, types and counts of operators whose plain cases stand in other groups."""

from __future__ import annotations

import numpy as np

from .case import Case, case

f32, f64, f16, i32, i64 = np.float32, np.float64, np.float16, np.int32, np.int64


def of(*values: object, dtype: type = f32) -> np.ndarray:
    return np.array(values, dtype)


def percentile(name: str, pairs: np.ndarray, *lengths: int) -> Case:
    column = of(1, 2, 4, 4.5, 5, 5.5, 6, 7, 9).reshape(-1, 1)
    x = np.repeat(column, len(lengths), 1)
    return case(name, "Percentile", x, pairs, of(*lengths, dtype=i32))


def buckets(name: str, *boundaries: float) -> Case:
    x = of(-6, -5, -1, 0, 0.5, 1, 2, 3).reshape(-1, 1)
    return case(name, "BatchBucketOneHot", x, of(len(boundaries), dtype=i32), of(*boundaries))


def end_gradients() -> list[Case]:
    found = []
    for side in ("Front", "Back"):
        for kind in ("Sum", "Mean"):
            for dtype in (i32, i64, f32, f64):
                dy = np.array([1, -2, 7], dtype)
                for x in (of(3, 3, dtype=i64), np.ones((3, 3), i32)):
                    name = f"{np.dtype(dtype)} of {x.dtype}{list(x.shape)}"
                    found.append(case(name, f"Reduce{side}{kind}Gradient", dy, x))
            none = np.zeros((0, 3) if side == "Front" else (3, 0), f32)
            found.append(case("of no rows", f"Reduce{side}{kind}Gradient", of(1, 2, 3), none))
            op_type, dy = f"Reduce{side}{kind}Gradient", of(1, 2, 7)
            sizes, lengths = of(3, 3, dtype=i64), of(1, 0, 3, dtype=i32)
            found.append(case("lengths", op_type, dy, sizes, lengths))
            found.append(case("lengths i64", op_type, dy, sizes, lengths.astype(i64)))
    found.append(case("negative", "ReduceFrontSumGradient", of(1, 2), of(-1, 2, dtype=i64)))
    return found


def ranked(name: str, x: np.ndarray, label: np.ndarray) -> list[Case]:
    return [
        case(name, "PairWiseLoss", x, label),
        case(name, "PairWiseLossGradient", x, label, of(2)),
    ]


def fused(op_type: str) -> list[Case]:
    parameters = of(0.5, 1, dtype=f16 if "HalfScaleBias" in op_type else f32).view(np.uint8)
    numbers = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
    rows = np.concatenate([numbers, np.broadcast_to(parameters, (2, 3, len(parameters)))], 2)
    return [
        case("3-d", op_type, rows),
        case("1-d", op_type, rows[1, 1].copy()),
        case("no rows", op_type, rows[:0, 0].copy()),
        case("3-d no rows", op_type, rows[:, :0].copy()),
        case("too narrow", op_type, rows[:, :, :3].copy()),
    ]


def quantized(op_type: str) -> list[Case]:
    x = np.arange(24).reshape(2, 3, 4).astype(f16 if op_type.startswith("Half") else f32)
    return [
        case("3-d", op_type, x),
        case("4-d", op_type, x[None]),
        case("1-d", op_type, x[1, 1].copy()),
        case("no rows", op_type, x[:0, 0].copy()),
    ]


def batch_norm_gradient(n: int, batches: int) -> Case:
    rng = np.random.default_rng(7)
    x, dy = (rng.standard_normal((n, 2, 3, 1)).astype(f32) for _ in range(2))
    inputs = [x, of(1, 2), dy, of(0.5, 2), of(1, 3)]
    if batches > 1:
        inputs += [of(3, 4), of(5, 6)]
    args = {"order": "NCHW", "epsilon": 1e-5, "num_batches": batches}
    return case(f"{n} in {batches}", "SpatialBNGradient", *inputs, outputs=3, **args)


def many(op_type: str, n: int) -> Case:
    ones, weight = np.ones((2, 2), f32), of(2)
    if op_type == "ScatterWeightedSum":
        rows = [np.ones((3, 2), f32), of(1), of(0, 2, dtype=i64)]
        return case(f"of {n}", op_type, *rows, *[ones, weight] * n, outputs=["X0"])
    if op_type == "WeightedSum":
        return case(f"of {n}", op_type, *[ones, weight] * n)
    if op_type == "MergeIdLists":
        lists = [of(2, 0, dtype=i32), of(3, 4, dtype=i64)] * n
        return case(f"of {n}", op_type, *lists, outputs=2)
    masks = [pair for i in range(n) for pair in (np.arange(n) == i, of(i))]
    return case(f"of {n}", op_type, *masks)


data = of(1, 2, 3)
CASES = [
    percentile("equal percentiles", of([2, 0.2], [5, 0.5], [7, 0.5]), 3),
    percentile("equal values", of([2, 0.2], [5, 0.5], [5, 0.6], [6, 0.7]), 4),
    percentile("falling percentiles", of([2, 0.2], [5, 0.5], [7, 0.4]), 3),
    percentile("falling values", of([2, 0.2], [5, 0.5], [4, 0.6], [1, 0.9], [8, 1]), 5),
    percentile("one pair", of([5, 0.2]), 1),
    percentile("no pairs", np.zeros((0, 2), f32), 0),
    percentile("no pairs for one", of([5, 0.2]), 0, 1),
    buckets("equal", -5, -1, 0, 0, 2),
    buckets("equal three", 0, 0, 0, 1, 1),
    buckets("none"),
    buckets("not sorted", 1, 0),
    case("none", "RemoveDataBlocks", data, np.array([])),
    case("none 2-d", "RemoveDataBlocks", data, np.zeros((0, 2), f32)),
    case("2-d", "RemoveDataBlocks", data, np.zeros((2, 0), i32)),
    case("float", "RemoveDataBlocks", data, data),
    *end_gradients(),
    *ranked("wide", of([[1]], [[3]]), of([0], [1])),
    *ranked("column", of([1], [3]), of([0], [1])),
    *ranked("label list", of([1], [3]), of(0, 1)),
    *ranked("list", of(1, 3), of([0], [1])),
    *ranked("labels 3-d", of(1, 3), of([[0]], [[1]])),
    *ranked("labels wide", of([1, 2], [3, 4]), of([0, 1], [1, 0])),
    *fused("Fused8BitRowwiseQuantizedToFloat"),
    *fused("Fused8BitRowwiseQuantizedToHalfFloat"),
    *fused("Fused8BitRowwiseQuantizedHalfScaleBiasToFloat"),
    *fused("Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat"),
    *quantized("FloatToFused8BitRowwiseQuantized"),
    *quantized("FloatToFused8BitRowwiseQuantizedHalfScaleBias"),
    *quantized("HalfFloatToFused8BitRowwiseQuantized"),
    *quantized("HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias"),
    case("no columns", "FloatToFused8BitRowwiseQuantized", np.zeros((3, 0), f32)),
    *(batch_norm_gradient(n, batches) for n in (0, 2) for batches in (1, 2)),
    *(
        many(op_type, n)
        for op_type in ("WeightedSum", "ScatterWeightedSum", "MergeIdLists", "BooleanUnmask")
        for n in (5, 7)
    ),
]
