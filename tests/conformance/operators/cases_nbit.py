# SPDX-License-Identifier: Apache-2.0
"""Rows of numbers of two, four and eight bits, and sums of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case

r = np.random.RandomState(21)
x = r.randn(5, 8).astype(np.float32)
table = {bits: r.randint(0, 256, (6, 4)).astype(np.uint8) for bits in (2, 4, 8)}
halves = r.randn(6, 2).astype(np.float16).view(np.uint8)
floats = r.randn(6, 2).astype(np.float32).view(np.uint8)
tables = {bits: np.hstack([rows, floats if bits == 8 else halves]) for bits, rows in table.items()}
indices = np.array([0, 5, 3, 3, 1], np.int64)
lengths = np.array([2, 0, 3], np.int32)
weights = r.randn(5).astype(np.float32)
mapping = np.array([2, -1, 0, 5, -1, 1], np.int32)


def conversions(kind: str, bits: int) -> list[Case]:
    dtype = np.float32 if kind == "Float" else np.float16
    name = f"{kind}ToFused{bits}BitRowwiseQuantized"
    fake = f"{kind}ToFused{bits}BitFakeRowwiseQuantized"
    back = f"Fused{bits}BitRowwiseQuantizedTo{kind}"
    given = x.astype(dtype)
    found = []
    for op_type in (name, fake):
        found += [
            case("simple", op_type, given),
            case("same", op_type, np.full((2, 4), 2.3, dtype)),
            case("near", op_type, (1000 + 0.001 * x).astype(dtype)),
            case("no rows", op_type, given[:0]),
            case("greedy", op_type, given, engine="GREEDY"),
            case("other type", op_type, x.astype(np.float64)),
            case("a number", op_type, np.array(3, dtype)),
        ]
    return [
        *found,
        case("odd", name, given[:, :3]),
        case("list", name, given[0]),
        case("three dimensions", name, given.reshape(5, 2, 4)),
        case("simple", back, tables[bits]),
        case("three dimensions", back, tables[bits].reshape(2, 3, 8)),
        case("no rows", back, tables[bits][:0]),
        case("just ends", back, halves),
        case("other type", back, tables[bits].astype(np.int32)),
    ]


def look_ups(op_type: str, data: np.ndarray, *more: np.ndarray) -> list[Case]:
    given = [weights] if "Weighted" in op_type else []
    other = [weights[:3]] if "Weighted" in op_type else []

    def one(name: str, *inputs: Any) -> Case:
        return case(name, op_type, *inputs, *more)

    return [
        one("int64", data, *given, indices, lengths),
        one("int32", data, *given, indices.astype(np.int32), lengths),
        one("out of range", data, *given, indices + 3, lengths),
        one("negative", data, *given, indices - 2, lengths),
        one("lengths", data, *given, indices, lengths + 1),
        one("fewer", data, *given, indices, lengths[:2]),
        one("none", data, *[w[:0] for w in given], indices[:0], lengths[:0]),
        one("matrix", data, *given, indices.reshape(5, 1), lengths),
        *([one("weights", data, *other, indices, lengths)] if given else []),
    ]


CASES = [
    *[one for kind in ("Float", "Half") for bits in (2, 4) for one in conversions(kind, bits)],
    *[
        one
        for kind in ("Sum", "WeightedSum", "Mean")
        for bits in (2, 4)
        for one in look_ups(f"SparseLengths{kind}Fused{bits}BitRowwise", tables[bits])
    ],
    *[
        one
        for kind in ("Sum", "WeightedSum", "Mean")
        for bits in (2, 4, 8)
        for one in look_ups(f"SparseLengths{kind}{bits}BitRowwiseSparse", tables[bits], mapping)
    ],
    case(
        "whole",
        "SparseLengthsSum4BitRowwiseSparse",
        tables[4],
        indices,
        lengths,
        np.zeros(1, np.int32),
    ),
    case("simple", "SparseLengthsSumSparseLookup", indices, lengths, mapping, outputs=2),
    case("weights", "SparseLengthsSumSparseLookup", indices, lengths, mapping, weights, outputs=3),
    case(
        "int32",
        "SparseLengthsSumSparseLookup",
        indices.astype(np.int32),
        lengths,
        mapping,
        outputs=2,
    ),
    case("out of range", "SparseLengthsSumSparseLookup", indices + 1, lengths, mapping, outputs=2),
    case("lengths", "SparseLengthsSumSparseLookup", indices, lengths + 1, mapping, outputs=2),
    case("mapping", "SparseLengthsSumSparseLookup", indices, lengths, indices, outputs=2),
]
