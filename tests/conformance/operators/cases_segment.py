# SPDX-License-Identifier: Apache-2.0
"""Segments: reduced, described, moved."""

from __future__ import annotations

import numpy as np

from .case import case, strings

r = np.random.RandomState(4)
x = r.randn(6, 3).astype(np.float32)
x3 = r.randn(6, 2, 2).astype(np.float32)
vector = r.randn(6).astype(np.float32)
weights = r.rand(6).astype(np.float32)
table = r.randn(10, 4).astype(np.float32)
text = strings(b"a", b"b", b"c", b"d", b"e", b"f")


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


ids = i32(0, 0, 1, 1, 1, 2)
mixed = i32(2, 0, 4, 2, 0, 4)
lengths = i32(2, 0, 3, 1)
indices = i64(9, 0, 3, 3, 5, 1)


def reduced(prefix: str, names: tuple, by: np.ndarray, sparse: bool) -> list:
    """The cases that all of them have."""
    found = []
    for name in names:
        extra = [weights] if "Weighted" in name else []
        chosen = [indices] if sparse else []
        data = table if sparse else x
        op = prefix + name
        found += [
            case("matrix", op, data, *extra, *chosen, by),
            # Sparse ones take int64, too, unlike Caffe2: see test_length_reductions.py.
            *([] if sparse else [case("by int64", op, data, *extra, *chosen, by.astype(np.int64))]),
            case("vector", op, data[:, 0], *extra, *chosen, by),
            case("3-d", op, data.reshape(len(data), -1, 1), *extra, *chosen, by),
            case("double", op, data.astype(np.float64), *extra, *chosen, by),
            case("too few", op, data, *extra, *chosen, by[:-1]),
            case(
                "empty",
                op,
                data[:0] if not sparse else data,
                *[e[:0] for e in extra],
                *[c[:0] for c in chosen],
                by[:0],
            ),
        ]
        if sparse:
            found += [
                case("int32", op, data, *extra, indices.astype(np.int32), by),
                case("out of range", op, data, *extra, indices + 3, by),
                case("negative", op, data, *extra, indices - 1, by),
            ]
        if extra:
            found.append(case("few weights", op, data, weights[:-2], *chosen, by))
    return found


PLAIN = ("Sum", "Mean", "WeightedSum")
RANGE = ("Sum", "Mean", "Max", "LogSumExp", "LogMeanExp")
CASES = [
    *reduced("SortedSegment", PLAIN, ids, False),
    *reduced("SparseSortedSegment", PLAIN, ids, True),
    *reduced("UnsortedSegment", PLAIN, mixed, False),
    *reduced("SparseUnsortedSegment", PLAIN, mixed, True),
    *reduced("SortedSegmentRange", RANGE, ids, False),
    *reduced("Lengths", (*PLAIN, "Max"), lengths, False),
    *reduced("SparseLengths", (*PLAIN, "Max"), lengths, True),
    *[case("gap", f"SortedSegment{name}", x, i32(0, 0, 1, 1, 3, 3)) for name in ("Sum", "Mean")],
    *[case("unsorted", f"SortedSegment{name}", x, mixed) for name in ("Sum", "RangeSum")],
    *[case("from one", f"SortedSegment{name}", x, ids + 1) for name in ("Sum", "RangeMax")],
    *[case("number", f"UnsortedSegment{name}", x, mixed, num_segments=7)
      for name in ("Sum", "Mean")],
    *[case("small number", f"UnsortedSegment{name}", x, mixed, num_segments=3)
      for name in ("Sum", "Mean")],
    case("negative id", "UnsortedSegmentSum", x, mixed - 1),
    case("half", "SparseLengthsSum", table.astype(np.float16), indices, lengths),
    case("half", "SparseLengthsMean", table.astype(np.float16), indices, lengths),
    case("half", "SparseLengthsWeightedSum", table.astype(np.float16), weights, indices, lengths),
    case("simple", "SparseLengthsPositionalWeightedSum", table, weights[:3], indices, lengths),
    case("more weights", "SparseLengthsPositionalWeightedSum", table, weights, indices, lengths),
    case("int32", "SparseLengthsPositionalWeightedSum", table, weights, indices.astype(np.int32),
         lengths),
    case("one", "LengthsSum", x, i32(6)),
    case("ones", "LengthsMean", x, i32(1, 1, 1, 1, 1, 1)),
    case("zeros", "LengthsMax", x[:0], i32(0, 0)),
    case("too long", "LengthsSum", x, i32(3, 4)),
    case("too short", "LengthsSum", x, i32(3, 2)),
    case("wide", "SparseLengthsSum", r.randn(20, 33).astype(np.float32), indices, lengths),
    # Lengths
    case("simple", "LengthsToSegmentIds", lengths),
    case("empty", "LengthsToSegmentIds", i32()),
    case("2-d", "LengthsToSegmentIds", i32(1, 2).reshape(1, 2)),
    case("int64", "LengthsToSegmentIds", i64(1, 2)),
    case("simple", "LengthsToRanges", lengths),
    case("empty", "LengthsToRanges", i32()),
    case("simple", "LengthsToOffsets", lengths),
    case("last", "LengthsToOffsets", lengths, include_last_offset=True),
    case("empty", "LengthsToOffsets", i32(), include_last_offset=True),
    case("default", "LengthsToWeights", lengths),
    case("one", "LengthsToWeights", lengths, power=1.0),
    case("two", "LengthsToWeights", lengths.astype(np.int64), power=2.0),
    case("zero", "LengthsToWeights", lengths, power=0.0),
    case("negative", "LengthsToWeights", i32(2, -1)),
    case("simple", "LengthsToShape", i32(3, 3)),
    case("unequal", "LengthsToShape", i32(3, 2)),
    case("one", "LengthsToShape", i32(5)),
    case("simple", "SegmentIdsToLengths", i32(0, 0, 2, 2, 2, 4)),
    case("int64", "SegmentIdsToLengths", i64(0, 0, 2)),
    case("from two", "SegmentIdsToLengths", i32(2, 2, 3)),
    case("column", "SegmentIdsToLengths", i32(0, 0, 2).reshape(3, 1)),
    case("with data", "SegmentIdsToLengths", i32(0, 0, 2), x),
    case("few data", "SegmentIdsToLengths", i32(0, 0, 7), x),
    case("empty", "SegmentIdsToLengths", i32()),
    case("empty with data", "SegmentIdsToLengths", i32(), x),
    case("unsorted", "SegmentIdsToLengths", i32(0, 2, 1, 2)),
    case("matrix", "SegmentIdsToLengths", i32(0, 0, 2, 2).reshape(2, 2)),
    case("simple", "SegmentIdsToRanges", i32(0, 0, 2, 2, 2, 4)),
    case("int64", "SegmentIdsToRanges", i64(0, 0, 2)),
    case("from two", "SegmentIdsToRanges", i32(2, 2, 3)),
    case("with data", "SegmentIdsToRanges", i32(0, 0, 2), x),
    case("empty", "SegmentIdsToRanges", i32()),
    case("unsorted", "SegmentIdsToRanges", i32(0, 2, 1, 2)),
    case("simple", "LengthsTile", x[:4], lengths),
    case("strings", "LengthsTile", text[:4], lengths),
    case("int64", "LengthsTile", i64(5, 6, 7, 8), lengths),
    case("wrong", "LengthsTile", x, lengths),
    case("negative", "LengthsTile", x[:2], i32(1, -1)),
    case("none", "LengthsTile", x[:2], i32(0, 0)),
    case("simple", "LengthsGather", x, lengths, i32(2, 0)),
    case("int64", "LengthsGather", x, lengths, i64(3, 3, 1)),
    case("strings", "LengthsGather", text, lengths, i32(2, 0)),
    case("none", "LengthsGather", x, lengths, i32()),
    case("out of range", "LengthsGather", x, lengths, i32(4)),
    case("wrong", "LengthsGather", x, lengths + 1, i32(2, 0)),
    case("simple", "LengthsPad", x, lengths, target_length=4),
    case("value", "LengthsPad", x, lengths, target_length=3, padding_value=7.5),
    case("int32", "LengthsPad", i32(1, 2, 3, 4, 5, 6), lengths, target_length=3,
         padding_value=-2.0),
    case("default value", "LengthsPad", i64(1, 2, 3, 4, 5, 6), lengths, target_length=3),
    case("double", "LengthsPad", x.astype(np.float64), lengths, target_length=3),
    case("too long", "LengthsPad", x, lengths, target_length=2),
    case("no target", "LengthsPad", x, lengths),
    case("simple", "LengthsSplit", i32(9, 4, 5, 0), n_split=3),
    case("one", "LengthsSplit", i32(9, 4, 5), n_split=1),
    case("input", "LengthsSplit", i32(9, 4, 5), i32(2)),
    case("none", "LengthsSplit", i32(9, 4, 5)),
    case("negative", "LengthsSplit", i32(9, 4, 5), n_split=-1),
    case("simple", "LengthsTopK", vector, lengths, k=2, outputs=2),
    case("ties", "LengthsTopK", f32(1, 1, 1, 3, 3, 2), i32(3, 3), k=2, outputs=2),
    case("one", "LengthsTopK", vector, lengths, k=1, outputs=2),
    case("no k", "LengthsTopK", vector, lengths, outputs=2),
    case("wrong", "LengthsTopK", vector, i32(2, 2), k=2, outputs=2),
    # Partition
    case("keys", "Partition", i32(0, 1, 5, 4, 3), outputs=2),
    case("rows", "Partition", i32(0, 1, 5, 4, 3), x[:5], outputs=4),
    case("int64", "Partition", i64(0, -1, 5, -4, 3), x[:5], outputs=6),
    case("packed", "Partition", i32(0, 1, 5, 4, 3), x[:5], pack_first_input=1, outputs=4),
    case("matrix", "Partition", i32(0, 1, 5, 4).reshape(2, 2), x3[:2], outputs=4),
    case("strings", "Partition", i32(0, 1, 5, 4, 3), text[:5], outputs=4),
    case("uneven", "Partition", i32(0, 1, 5), x[:3], outputs=3),
    case("sizes", "Partition", i32(0, 1, 5), x[:2], outputs=4),
    case("simple", "LengthsPartition", i32(2, 3), i32(0, 1, 5, 4, 3), outputs=4),
    case("rows", "LengthsPartition", i32(2, 3), i32(0, 1, 5, 4, 3), x[:5], outputs=6),
    case("packed", "LengthsPartition", i32(2, 3), i64(0, 1, 5, 4, 3), pack_first_input=1,
         outputs=4),
    case("one", "LengthsPartition", i32(2, 3), i32(0, 1, 5, 4, 3), outputs=2),
    case("wrong", "LengthsPartition", i32(2, 2), i32(0, 1, 5, 4, 3), outputs=4),
    case("simple", "GatherByKey", i32(0, 1, 5, 4, 3), x[:2], x[2:5]),
    case("one", "GatherByKey", i64(0, 1, 5, 4, 3), x[:5]),
    case("strings", "GatherByKey", i32(0, 1, 5, 4, 3), text[:2], text[2:5]),
    case("types", "GatherByKey", i32(0, 1, 5, 4, 3), x[:2], i32(1, 2, 3)),
    case("too few", "GatherByKey", i32(0, 1, 5, 4, 3), x[:2], x[2:4]),
    case("simple", "MergeIdLists", i32(2, 3), i64(5, 1, 7, 7, 2), i32(1, 2), i64(1, 3, 2),
         outputs=2),
    case("one", "MergeIdLists", i32(2, 0), i32(5, 1), outputs=2),
    case("wrong number", "MergeIdLists", i32(2), i32(5, 1), i32(1, 0), i32(1), outputs=2),
    case("floats", "MergeIdLists", i32(2), f32(5, 1), outputs=2),
]  # fmt: skip
