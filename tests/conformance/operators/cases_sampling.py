# SPDX-License-Identifier: Apache-2.0
"""Operators that draw by chance, where there is but one thing to draw; rows of few bits."""

from __future__ import annotations

import numpy as np

from .case import Case, case

f32, f64, i32, i64 = np.float32, np.float64, np.int32, np.int64
weights = np.array([[0, 1, 0], [0, 0, 3]], f32)
sums = np.array([0, 0, 1], f32)
x = np.arange(1, 6)
lengths = np.array([2, 0, 3], i32)
matrix = np.array([[0, 1, 2, 3, 4, 5.5, 7], [-3, 2, 2, 2, 2, 2, 9]], f32)
noise = np.random.RandomState(3).randn(3, 9).astype(f32)


def sample(name: str, *inputs: np.ndarray, outputs: int = 1) -> Case:
    return case(name, "WeightedSample", *inputs, outputs=outputs)


def many(name: str, *inputs: np.ndarray, **args: int) -> Case:
    return case(name, "WeightedMultiSampling", *inputs, **args)


def dropout(name: str, *inputs: np.ndarray, **args: float) -> Case:
    return case(name, "SparseDropoutWithReplacement", *inputs, outputs=2, **args)


def coalesce(name: str, *inputs: np.ndarray, outputs: int | list[str]) -> Case:
    return case(name, "UnsafeCoalesce", *inputs, outputs=outputs)


def quantize(name: str, values: np.ndarray, **args: int) -> Case:
    return case(name, "FloatToFusedRandRowwiseQuantized", values, **args)


def rows(name: str, values: np.ndarray, **head: int) -> Case:
    changed = values.copy()
    for place, byte in head.items():
        changed[0, int(place[1:])] = byte
    return case(name, "FusedRandRowwiseQuantizedToFloat", changed)


def four_numbers_a_byte() -> np.ndarray:
    head = np.array([2, 1], np.uint8)
    ends = np.array([0, 3], f32).view(np.uint8)
    return np.concatenate([head, ends, np.array([0b11100100, 0b01, 0b11], np.uint8)])[None]


packed = four_numbers_a_byte()

CASES = [
    sample("sure", weights),
    sample("values", weights, weights * 2, outputs=2),
    sample("without values", weights, outputs=2),
    sample("values unasked", weights, weights),
    sample("sizes", weights, weights[:1].copy(), outputs=2),
    sample("type", weights.astype(f64)),
    sample("list", weights[0].copy()),
    sample("no rows", weights[:0].copy(), weights[:0].copy(), outputs=2),
    sample("no columns", weights[:, :0].copy()),
    sample("no weight", weights * 0),
    sample("negative", -weights),
    many("sure", sums * 0, num_samples=3),
    many("falling", -weights[0], num_samples=3),
    many("none", sums),
    many("sizes", sums * 0, weights),
    many("sizes twice", sums, weights, num_samples=3),
    many("no weights", sums[:0].copy(), num_samples=3),
    many("no weights sizes", sums[:0].copy(), weights),
    many("matrix", weights, num_samples=3),
    many("negative", sums, num_samples=-1),
    many("zero", sums, num_samples=0),
    dropout("none", x, lengths, ratio=0.0, replacement_value=9),
    dropout("all", x, lengths, ratio=1.0, replacement_value=9),
    dropout("default", x, lengths),
    dropout("all default", x, lengths, ratio=1.0),
    dropout("ratio", x, lengths, ratio=1.5),
    dropout("too short", x, lengths[:2].copy()),
    dropout("too long", x[:2].copy(), lengths),
    dropout("type", x.astype(i32), lengths),
    dropout("lengths type", x, lengths.astype(i64)),
    dropout("matrix", x.reshape(5, 1), lengths),
    dropout("lengths matrix", x, lengths.reshape(3, 1), ratio=1.0),
    dropout("empty", x[:0].copy(), lengths[:0].copy(), ratio=1.0),
    dropout("empty segments", x[:0].copy(), lengths * 0, ratio=1.0),
    coalesce("new", weights, sums, outputs=3),
    coalesce("in place", weights, sums, outputs=["X0", "X1", "Z"]),
    coalesce("empty", weights, sums[:0].copy(), outputs=3),
    coalesce("one", weights, outputs=2),
    coalesce("of six", *[sums + i for i in range(6)], outputs=[*(f"X{i}" for i in range(6)), "Z"]),
    coalesce("type", weights, sums.astype(f64), outputs=3),
    coalesce("too few", weights, sums, outputs=2),
    *(
        quantize(f"{name} {bits}", values, bitwidth=bits, random=0)
        for bits in (1, 2, 4, 8)
        for name, values in [("steps", matrix), ("noise", noise)]
    ),
    quantize("equal", matrix * 0 + 1, bitwidth=2),
    quantize("bits", matrix, bitwidth=3),
    quantize("list", matrix[0].copy()),
    quantize("no rows", matrix[:0].copy(), random=0),
    quantize("no columns", matrix[:, :0].copy(), random=0),
    quantize("type", matrix.astype(f64)),
    rows("two bits", packed),
    rows("eight bits", packed, _0=8),
    rows("one bit", packed, _0=1, _1=7),
    rows("four bits", packed, _0=4, _1=0),
    rows("bits", packed, _0=3),
    rows("no bits", packed, _0=0),
    rows("tail", packed, _0=8, _1=8),
    rows("narrow", packed[:, :9].copy()),
    case("no rows", "FusedRandRowwiseQuantizedToFloat", packed[:0].copy()),
    case("list", "FusedRandRowwiseQuantizedToFloat", packed[0].copy()),
    case("type", "FusedRandRowwiseQuantizedToFloat", packed.astype(f32)),
]
