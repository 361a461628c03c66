# SPDX-License-Identifier: Apache-2.0
"""Segments packed and padded, strings, choices, statistics."""

from __future__ import annotations

import numpy as np

from .case import Case, case, strings

r = np.random.RandomState(6)
x = r.randn(6, 3).astype(np.float32)
x3 = r.randn(4, 3, 2).astype(np.float32)
vector = r.randn(30).astype(np.float32)
odd = np.array([np.nan, np.inf, 0], np.float32)
text = strings(b"abcdef", b"b", b"xyz", b"", b"defabc", b"\xff\x00abc")
flags = np.array([True, False, True])


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


lengths = i32(2, 0, 3, 1)
edges = [-1.0, -0.3, 0.0, 0.7, 1.5]
raw = [1.0, 2.0, 3.0, 4.0, 10.0, 20.0]
CASES = [
    case("simple", "PackSegments", lengths, x),
    case("int64", "PackSegments", lengths.astype(np.int64), x),
    case("minf", "PackSegments", lengths, x, pad_minf=True),
    case("mask", "PackSegments", lengths, x, return_presence_mask=True, outputs=2),
    case("longer", "PackSegments", lengths, x, max_length=4),
    case("shorter", "PackSegments", lengths, x, max_length=2),
    case("vector", "PackSegments", lengths, x[:, 0]),
    case("strings", "PackSegments", lengths, text),
    case("wrong", "PackSegments", lengths + 1, x),
    case("double", "PackSegments", i32(3, 3), x.astype(np.float64)),
    case("ints", "PackSegments", i32(3, 3), i64(1, 2, 3, 4, 5, 6)),
    case("simple", "UnpackSegments", i32(2, 0, 3, 1), x3),
    case("by int64", "UnpackSegments", i64(2, 0, 3, 1), x3),
    case("max length", "UnpackSegments", i32(2, 0, 3, 1), x3, max_length=3),
    case("wrong max length", "UnpackSegments", i32(2, 0, 3, 1), x3, max_length=2),
    case("strings", "UnpackSegments", i32(2, 1), text.reshape(2, 3)),
    case("wrong", "UnpackSegments", i32(2, 0, 3), x3),
    case("double", "UnpackSegments", i32(2, 0, 3, 1), x3.astype(np.float64)),
    case("bool", "UnpackSegments", i32(2, 0, 3, 1), x3 > 0),
    case("int64", "UnpackSegments", i32(2, 0, 3, 1), (9 * x3).astype(np.int64)),
    case("uint8", "UnpackSegments", i32(2, 0, 3, 1), (x3 > 0).astype(np.uint8)),
    case("bool", "PackSegments", lengths, x > 0),
    case("uint8", "PackSegments", lengths, (x > 0).astype(np.uint8)),
    case("int8", "PackSegments", lengths, (x > 0).astype(np.int8)),
    case("simple", "ReversePackedSegs", x3, i32(4, 2, 0)),
    case("int64", "ReversePackedSegs", x3, i64(4, 2, 1)),
    case("too long", "ReversePackedSegs", x3, i32(5, 2, 0)),
    case("wrong", "ReversePackedSegs", x3, i32(4, 2)),
    *[
        made
        for widths in ({}, {"padding_width": 2}, {"padding_width": 1, "end_padding_width": 0},
                       {"padding_width": 0, "end_padding_width": 2}, {"padding_width": 0})
        for made in (
            case(f"all {widths}", "AddPadding", x, **widths),
            case(f"lengths {widths}", "AddPadding", x, lengths, outputs=2, **widths),
            case(f"rows {widths}", "AddPadding", x, lengths, x[0], x[1], outputs=2, **widths),
            case(f"row {widths}", "AddPadding", x, lengths, x[0], **widths),
            case(f"all {widths}", "RemovePadding", x, **widths),
            case(f"lengths {widths}", "RemovePadding", x, i32(2, 4), outputs=2, **widths),
            case(f"all {widths}", "GatherPadding", x, **widths),
            case(f"both {widths}", "GatherPadding", x, i32(2, 4), outputs=2, **widths),
        )
    ],
    case("wrong row", "AddPadding", x, lengths, x[0, :2]),
    case("negative", "AddPadding", x, padding_width=-1),
    case("wrong lengths", "AddPadding", x, lengths + 1),
    case("ints", "AddPadding", i64(1, 2, 3), i32(2, 1)),
    case("simple", "PadEmptySamples", i32(0, 2, 0, 1), x[:3], outputs=2),
    case("two", "PadEmptySamples", i32(0, 2, 0, 1), x[:3], i64(1, 2, 3), outputs=3),
    case("lengths", "PadEmptySamples", i32(0, 2, 0, 1), outputs=1),
    case("none", "PadEmptySamples", i32(1, 2), x[:3], outputs=2),
    case("wrong", "PadEmptySamples", i32(1, 3), x[:3], outputs=2),
    # SequenceMask
    case("sequence", "SequenceMask", x, i32(0, 1, 2, 3, 1, 2), mode="sequence"),
    case("sequence fill", "SequenceMask", x, i32(0, 1, 2, 3, 1, 2), mode="sequence",
         fill_val=-1.0),
    case("sequence axis", "SequenceMask", x3, i32(*range(12)) % 3, mode="sequence", axis=2),
    case("repeat", "SequenceMask", x3, i32(0, 1, 2, 1), mode="sequence", axis=1,
         repeat_from_axis=2, fill_val=0.0),
    case("repeat last", "SequenceMask", x3, i32(0, 1, 2, 1), mode="sequence", axis=1,
         repeat_from_axis=-1),
    case("window", "SequenceMask", r.randn(4, 8).astype(np.float32), i32(0, 3, 7, 4),
         mode="window", radius=2),
    *[case(mode, "SequenceMask", x, mode=mode)
      for mode in ("upper", "lower", "upperdiag", "lowerdiag")],
    case("batch", "SequenceMask", x3, mode="upper", batch=0, axis=2),
    case("batch sequence", "SequenceMask", x3, i32(1, 0, 2), mode="sequence", batch=0, axis=2),
    case("grad", "SequenceMask", x, mode="upper", grad=True),
    case("in place", "SequenceMask", x, mode="upper", outputs=["X0"]),
    case("unknown", "SequenceMask", x, mode="odd"),
    # Strings
    case("default", "StringPrefix", text),
    case("two", "StringPrefix", text.reshape(2, 3), length=2),
    case("default", "StringSuffix", text),
    case("two", "StringSuffix", text.reshape(2, 3), length=2),
    case("simple", "StringStartsWith", text, prefix="abc"),
    case("simple", "StringEndsWith", text, suffix="abc"),
    case("empty", "StringEndsWith", text, suffix=""),
    case("simple", "StringEquals", text.reshape(3, 2), text="xyz"),
    case("floats", "StringPrefix", x),
    case("list", "StringJoin", text),
    case("rows", "StringJoin", text.reshape(2, 3)),
    case("delimiter", "StringJoin", text.reshape(2, 3), delimiter="; "),
    case("columns", "StringJoin", text.reshape(2, 3), axis=1),
    case("list axis 1", "StringJoin", text, axis=1),
    case("floats", "StringJoin", np.array([[1.5, 1e10, 1e-5], [100000, 1234567, 0.1]], np.float32)),
    case("ints", "StringJoin", i64(1, 2, 3, 4).reshape(2, 2), delimiter="/"),
    case("bool", "StringJoin", flags.reshape(1, 3)),
    case("uint8", "StringJoin", np.array([[65, 66]], np.uint8)),
    case("3-d", "StringJoin", x3),
    case("axis 2", "StringJoin", text, axis=2),
    # Choices
    case("simple", "Where", flags, f32(1, 2, 3), f32(4, 5, 6)),
    case("ints", "Where", flags, i64(1, 2, 3), i64(4, 5, 6)),
    case("strings", "Where", flags, text[:3], text[3:]),
    case("rows", "Where", flags, x[:3], x[3:], broadcast_on_rows=1),
    case("no rows", "Where", flags, x[:3], x[3:]),
    case("types", "Where", flags, f32(1, 2, 3), i64(4, 5, 6)),
    case("bool", "Where", flags, flags, ~flags),
    case("simple", "Conditional", flags, f32(1, 2, 3), f32(4, 5, 6)),
    case("rows", "Conditional", flags, x[:3], x[3:]),
    case("ints", "Conditional", flags, i64(1, 2, 3), i64(4, 5, 6)),
    case("strings", "Conditional", flags, text[:3], text[3:]),
    case("wrong", "Conditional", flags, x, x),
    case("stop", "Range", i32(5)),
    case("start", "Range", i64(2), i64(5)),
    case("step", "Range", i32(1), i32(10), i32(3)),
    case("step fits", "Range", i32(1), i32(10), i32(9)),
    case("down", "Range", i32(10), i32(1), i32(-3)),
    case("down uneven", "Range", i32(10), i32(2), i32(-3)),
    case("none", "Range", i32(5), i32(2)),
    case("floats", "Range", f32(0), f32(1), f32(0.3)),
    case("floats down", "Range", f32(1), f32(0), f32(-0.4)),
    case("doubles", "Range", np.array([2.5])),
    case("zero step", "Range", i32(1), i32(10), i32(0)),
    case("two numbers", "Range", i32(1, 2)),
    case("types", "Range", i32(1), i64(10)),
    case("0-d", "Range", np.array(4, np.int64)),
    Case("Accumulate twice", {"X": x, "Y": x + 1}, [("Accumulate", ["X"], ["Y"], {"gamma": 0.5}),
         ("Accumulate", ["X"], ["Y"], {"gamma": 2.0})]),
    case("simple", "NanCheck", x),
    case("in place", "NanCheck", x, outputs=["X0"]),
    case("nan", "NanCheck", odd),
    case("infinite", "NanCheck", odd[1:]),
    case("simple", "EnforceFinite", x, outputs=0),
    case("nan", "EnforceFinite", odd, outputs=0),
    case("simple", "Assert", flags[:1], outputs=0),
    case("ints", "Assert", i64(1, 2, -3), outputs=0),
    case("false", "Assert", flags, outputs=0, error_msg="no"),
    case("floats", "Assert", x, outputs=0),
    case("simple", "Fail", outputs=0),
    case("simple", "ThrowException", outputs=0, message="no"),
    case("simple", "KeySplit", i64(0, 2, 1, 0, 2), categorical_limit=3, outputs=3),
    case("out of range", "KeySplit", i64(0, 2, 3), categorical_limit=3, outputs=3),
    # Statistics
    case("simple", "Histogram", vector, bin_edges=edges),
    case("several", "Histogram", vector, x, bin_edges=edges),
    case("edges", "Histogram", f32(*edges), bin_edges=edges),
    case("double", "Histogram", vector.astype(np.float64), bin_edges=edges),
    case("one edge", "Histogram", vector, bin_edges=[0.0]),
    case("unsorted", "Histogram", vector, bin_edges=[0.0, 0.0]),
    case("linear", "SelfBinningHistogram", vector, num_bins=5, outputs=2),
    case("several", "SelfBinningHistogram", vector, x, num_bins=4, outputs=2),
    case("abs", "SelfBinningHistogram", vector, num_bins=4, abs=True, outputs=2),
    case("logarithmic", "SelfBinningHistogram", np.abs(vector), num_bins=4,
         bin_spacing="logarithmic", outputs=2),
    case("logarithmic start", "SelfBinningHistogram", vector, num_bins=4,
         bin_spacing="logarithmic", logspace_start=1e-3, outputs=2),
    case("constant", "SelfBinningHistogram", f32(2, 2, 2), num_bins=3, outputs=2),
    case("empty", "SelfBinningHistogram", f32(), num_bins=3, outputs=2),
    case("double", "SelfBinningHistogram", vector.astype(np.float64), num_bins=5, outputs=2),
    case("no bins", "SelfBinningHistogram", vector, outputs=2),
    case("simple", "AccumulateHistogram", vector, lower_bound=-1.0, upper_bound=1.0, num_buckets=4,
         outputs=2),
    case("default", "AccumulateHistogram", vector, outputs=2),
    *[case(f"{q}", "Quantile", vector, quantile=q, abs=False, tol=1e-4)
      for q in (0.0, 0.25, 0.5, 0.9, 1.0)],
    case("abs", "Quantile", vector, quantile=0.5),
    case("several", "Quantile", vector, x, quantile=0.3),
    case("double", "Quantile", vector.astype(np.float64), quantile=0.3),
    case("none", "Quantile", f32(), quantile=0.5),
    case("too great", "Quantile", vector, quantile=1.5),
    case("simple", "BisectPercentile", np.array([[0.5, 5], [1, 10], [2.5, 20], [3, 7], [9, 30]],
         np.float32), percentile_raw=raw, percentile_mapping=[0.1, 0.3, 0.9, 0.2, 0.5, 1.0],
         percentile_lower=[0.1, 0.2, 0.8, 0.2, 0.4, 0.9],
         percentile_upper=[0.15, 0.3, 0.9, 0.3, 0.5, 1.0], lengths=[3, 3]),
    case("simple", "Percentile", np.array([[0.5, 5], [1, 10], [2.5, 20], [3, 7], [9, 30]],
         np.float32), np.array([[1, 0.1], [2, 0.3], [3, 0.9], [4, 0.2], [10, 0.5], [20, 1.0]],
         np.float32), i32(3, 3)),
    case("simple", "StumpFunc", x, threshold=0.2, low_value=-1.5, high_value=2.5),
    case("default", "StumpFunc", x),
    case("simple", "StumpFuncIndex", vector, threshold=0.2, outputs=2),
    case("arguments", "PiecewiseLinearTransform", x[:, :2], bounds=[-1.0, 0.0, 1.0, -2.0, 0.5, 2.0],
         slopes=[1.0, 2.0, 3.0, 0.5], intercepts=[0.1, 0.2, 0.3, 0.4]),
    case("inputs", "PiecewiseLinearTransform", x[:, :2], f32(-1, 0, 1, -2, 0.5, 2),
         f32(1, 2, 3, 0.5), f32(0.1, 0.2, 0.3, 0.4)),
    case("binary", "PiecewiseLinearTransform", x[:, :2], bounds=[-1.0, 0.0, 1.0],
         slopes=[1.0, 2.0], intercepts=[0.1, 0.2], binary=True),
    case("binary one", "PiecewiseLinearTransform", x[:, 0], bounds=[-1.0, 0.0, 1.0],
         slopes=[1.0, 2.0], intercepts=[0.1, 0.2], binary=True),
    case("unsorted", "PiecewiseLinearTransform", x[:, :1], bounds=[0.0, -1.0, 1.0],
         slopes=[1.0, 2.0], intercepts=[0.1, 0.2]),
    case("incomplete", "PiecewiseLinearTransform", x[:, :1], bounds=[0.0, 1.0], slopes=[1.0]),
    case("simple", "NGramFromCategorical", f32(1, 4, 2, 2, 3, 1, 1, 9, 2).reshape(3, 3),
         col_ids=[0, 2], categorical_limits=[2, 3], vals=[1, 2, 2, 1, 5]),
]  # fmt: skip
