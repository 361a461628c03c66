# SPDX-License-Identifier: Apache-2.0
"""Bytes with scales elsewhere, codebooks, summaries, counts, group FTRL, freed blobs."""

from __future__ import annotations

import numpy as np

from .case import Case, case

f32, f64, i32, i64, u8 = np.float32, np.float64, np.int32, np.int64, np.uint8
data = np.arange(12, dtype=u8).reshape(3, 4)
ends = np.array([[0.5, 1], [1, 0], [2, -1]], f32)
indices = np.array([0, 2, 1])
lengths = np.array([2, 0, 1], i32)
weights = np.array([1, 2, 3], f32)
none = indices[:0].copy()
book = np.array([0.1, 0.2, 0.3], f32)
codes = np.array([0, 2, 2], u8)

rng = np.random.RandomState(0)
pairs = np.abs(rng.randn(2, 3, 2)).astype(f32)
gradient = rng.randn(2, 3).astype(f32)
parameters = np.ones((2, 3), f32)


def lookup(name: str, *inputs: np.ndarray) -> Case:
    return case(name, "SparseLengthsSum8BitsRowwise", *inputs)


def weighted(name: str, *inputs: np.ndarray) -> Case:
    return case(name, "SparseLengthsWeightedSum8BitsRowwise", *inputs)


def ftrl(name: str, *inputs: np.ndarray, **args: float) -> Case:
    return case(name, "GFtrl", *inputs, outputs=["X0", "X1"], **args)


def count(name: str, value: np.ndarray) -> Case:
    mutex = ("CreateMutex", [], ["M"], {})
    return Case(name, {"I": value}, [mutex, ("AtomicIter", ["M", "I"], ["I"], {})], ["I"])


CASES = [
    lookup("sum", data, indices, lengths, ends),
    weighted("sum", data, weights, indices, lengths, ends),
    case("mean", "SparseLengthsMean8BitsRowwise", data, indices, lengths, ends),
    case("mean", "SparseLengthsWeightedMean8BitsRowwise", data, weights, indices, lengths, ends),
    lookup("3-d", data.reshape(3, 2, 2), indices.astype(i32), lengths, ends),
    lookup("no indices", data, none, lengths * 0, ends),
    lookup("no lengths", data, none, lengths[:0].copy(), ends),
    lookup("few ends", data, indices, lengths, ends[:2].copy()),
    lookup("long", data, indices, lengths + 1, ends),
    lookup("short", data, indices, lengths[:1].copy(), ends),
    lookup("index", data, indices + 1, lengths, ends),
    lookup("lengths type", data, indices, lengths.astype(i64), ends),
    lookup("data type", data.astype(np.int8), indices, lengths, ends),
    lookup("no rows", data[:0].copy(), none, lengths * 0, ends[:0].copy()),
    weighted("more weights", data, np.arange(1, 6, dtype=f32), indices, lengths, ends),
    weighted("column", data, weights.reshape(3, 1), indices, lengths, ends),
    weighted("weights type", data, weights.astype(f64), indices, lengths, ends),
    case("bytes", "QuantDecode", book, codes),
    case("two", "QuantDecode", book, codes.reshape(1, 3), codes[:1].astype(i32), outputs=2),
    case("uint16", "QuantDecode", book.reshape(1, 3), codes.astype(np.uint16)),
    case("int64", "QuantDecode", book, codes.astype(i64)),
    case("book type", "QuantDecode", book.astype(f64), codes),
    case("outputs", "QuantDecode", book, codes, outputs=2),
    case("one", "QuantDecodeGradient", book, codes, weights),
    case("two", "QuantDecodeGradient", book, codes, codes[:1].astype(i32), weights, weights[2:]),
    case("ends", "ByteWeightDequant", data * 20, min=-1.0, max=2.0, shape=[3, 4]),
    case("default", "ByteWeightDequant", data, shape=[2, 6]),
    case("fewer", "ByteWeightDequant", data, shape=[2, 5]),
    case("no shape", "ByteWeightDequant", data),
    case("type", "ByteWeightDequant", ends, shape=[2]),
    case("matrix", "Summarize", ends),
    case("one", "Summarize", ends[:1, :1].copy()),
    case("nan last", "Summarize", np.array([1, np.nan], f32)),
    case("none", "Summarize", ends[:0].copy()),
    case("type", "Summarize", data),
    count("count", np.array([41])),
    count("count of no dimensions", np.array(0)),
    count("counts", np.array([41, 42])),
    ftrl("default", parameters, pairs, gradient),
    ftrl("rare", parameters, pairs, gradient, alpha=0.1, lambda1=5.0, lambda2=0.2, beta=0.5),
    ftrl("list", parameters[0].copy(), pairs[0].copy(), gradient[0].copy(), lambda1=0.5),
    ftrl("3-d", parameters[None], pairs[None], gradient[None], lambda1=0.5),
    ftrl("rate", parameters, pairs, gradient, np.array([0.3], f32)),
    ftrl("rate twice", parameters, pairs, gradient, np.array([0.3], f32), alpha=0.1),
    ftrl("sizes", parameters, pairs[0].copy(), gradient),
    Case(
        "free",
        {"A": data, "B": ends},
        [("Free", ["A", "B"], ["A", "B"], {}), ("Copy", ["A"], ["C"], {})],
        [],
    ),
    Case("names", {"A": data, "B": ends}, [("GetAllBlobNames", [], ["N"], {})]),
]
