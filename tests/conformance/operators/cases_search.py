# SPDX-License-Identifier: Apache-2.0
"""Elements found, sorted, bucketed, scattered."""

from __future__ import annotations

import numpy as np

from .case import case, strings

r = np.random.RandomState(5)
x = r.randn(4, 6).astype(np.float32)
x3 = r.randn(2, 3, 4).astype(np.float32)
ties = np.array([[1, 3, 3, 0, 3], [2, 2, 2, 2, 2]], np.float32)
text = strings(b"a", b"b", b"a", b"c", b"")
empty = np.zeros((0, 3), np.float32)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


CASES = [
    case("two", "TopK", x, k=2, outputs=2),
    case("flat", "TopK", x, k=2, outputs=3),
    case("more", "TopK", x[:, :2], k=4, outputs=3),
    case("axis 0", "TopK", x, k=2, axis=0, outputs=3),
    case("axis 1", "TopK", x3, k=2, axis=1, outputs=3),
    case("axis last", "TopK", x3, k=3, axis=2, outputs=2),
    case("ties", "TopK", ties, k=3, outputs=3),
    case("vector", "TopK", x[0], k=3, outputs=3),
    case("input", "TopK", x, i64(3), outputs=2),
    case("one", "TopK", x, k=1, outputs=2),
    case("no k", "TopK", x, outputs=2),
    case("zero", "TopK", x, k=0, outputs=2),
    case("too far", "TopK", x, k=1, axis=2, outputs=2),
    case("double", "TopK", x.astype(np.float64), k=2, outputs=2),
    case("int32", "TopK", i32(3, 1, 2), k=2, outputs=2),
    case("simple", "FlexibleTopK", x, i64(2, 1, 3, 6), outputs=2),
    case("3-d", "FlexibleTopK", x3, i64(2, 1, 3, 4, 1, 2), outputs=2),
    case("too many", "FlexibleTopK", x, i64(2, 1, 3, 7), outputs=2),
    case("wrong", "FlexibleTopK", x, i64(2, 1, 3), outputs=2),
    case("simple", "Unique", i32(5, 3, 5, 1, 3)),
    case("remap", "Unique", i32(5, 3, 5, 1, 3), outputs=2),
    case("int64", "Unique", i64(5, -3, 5, 2**40), outputs=2),
    case("empty", "Unique", i64(), outputs=2),
    case("matrix", "Unique", i64(1, 2).reshape(1, 2)),
    case("floats", "Unique", x[0]),
    case("simple", "Find", i32(5, 3, 5, 1), i32(1, 5, 7)),
    case("many", "Find", i32(5, 3, 5, 1), np.arange(20, dtype=np.int32).reshape(4, 5)),
    case("missing", "Find", i64(5, 3, 5, 1), i64(1, 5, 7), missing_value=-5),
    case("types", "Find", i64(5, 3, 5, 1), i32(1, 5, 7)),
    case("floats", "Find", x[0], x[0]),
    case("simple", "FindDuplicateElements", i32(5, 3, 5, 1, 3)),
    case("floats", "FindDuplicateElements", f32(5, 3, 5, 1, 3)),
    case("strings", "FindDuplicateElements", text),
    case("none", "FindDuplicateElements", i64(1, 2, 3)),
    case("matrix", "FindDuplicateElements", x),
    case("simple", "IsMemberOf", i32(5, 3, 5, 1, 3), value=[3, 1]),
    case("int64", "IsMemberOf", i64(5, 3, 5, 1, 3).reshape(5, 1), value=[3, 1]),
    case("strings", "IsMemberOf", text, value=["a", ""]),
    case("bool", "IsMemberOf", np.array([True, False]), value=[True]),
    case("dtype", "IsMemberOf", i64(5, 3), value=[3, 1], dtype=10),
    case("other dtype", "IsMemberOf", i64(5, 3), value=[3, 1], dtype=2),
    case("no value", "IsMemberOf", i64(5, 3)),
    case("floats", "IsMemberOf", x, value=[3, 1]),
    case("simple", "Bucketize", x, boundaries=[-0.5, 0.0, 0.5]),
    case("edges", "Bucketize", f32(-0.5, 0, 0.5, 1), boundaries=[-0.5, 0.0, 0.5]),
    case("none", "Bucketize", x, boundaries=[]),
    case("unsorted", "Bucketize", x, boundaries=[0.5, 0.0]),
    case("simple", "BatchBucketize", x, i32(0, 3), f32(-0.5, 0, 0.5, 0.1), i32(3, 1)),
    case("wrong", "BatchBucketize", x, i32(0, 3), f32(-0.5, 0, 0.5, 0.1), i32(3, 2)),
    case("simple", "OneHot", i64(1, 3, 0), i64(4)),
    case("matrix", "OneHot", i64(1).reshape(1, 1), i64(4)),
    case("int32", "OneHot", i32(1, 3), i64(4)),
    case("two sizes", "OneHot", i64(1, 3), i64(4, 5)),
    case("simple", "SegmentOneHot", i32(2, 0, 1), i64(1, 3, 2), i64(4)),
    case("simple", "BatchOneHot", i32(1, 5, 2, 6, 1, 7).reshape(3, 2), i32(2, 3),
         i32(1, 2, 5, 6, 7)),
    case("int64", "BatchOneHot", i64(1, 5, 2, 6, 1, 7).reshape(3, 2), i32(2, 3),
         i64(1, 2, 5, 6, 7)),
    case("vector", "BatchOneHot", i64(1, 5, 2), i32(2), i64(1, 2)),
    case("wrong", "BatchOneHot", i64(1, 5, 2, 6).reshape(2, 2), i32(2, 2), i64(1, 2, 5)),
    case("simple", "BatchBucketOneHot", x[:, :2], i32(2, 3), f32(-0.5, 0.5, -1, 0, 1)),
    case("edges", "BatchBucketOneHot", f32(1, 2, 3).reshape(3, 1), i32(2), f32(1, 2)),
    case("wrong", "BatchBucketOneHot", x[:, :2], i32(2, 2), f32(-0.5, 0.5, -1, 0, 1)),
    # Scatter
    case("simple", "ScatterAssign", x, i64(2, 0), x[:2] * 2, outputs=["X0"]),
    case("int32", "ScatterAssign", x, i32(2, 0), x[:2] * 2, outputs=["X0"]),
    case("ints", "ScatterAssign", i64(1, 2, 3), i32(2, 0), i64(7, 8), outputs=["X0"]),
    case("uint8", "ScatterAssign", i64(1, 2, 3).astype(np.uint8), i32(2), i64(7).astype(np.uint8),
         outputs=["X0"]),
    case("not in place", "ScatterAssign", x, i64(2, 0), x[:2] * 2),
    case("sizes", "ScatterAssign", x, i64(2, 0), x[:1], outputs=["X0"]),
    case("types", "ScatterAssign", x, i64(2), i64(1), outputs=["X0"]),
    case("none", "ScatterAssign", x, i64(), x[:0], outputs=["X0"]),
    case("simple", "ScatterWeightedSum", x, f32(1), i64(2, 0), x[:2], f32(0.5), outputs=["X0"]),
    case("scaled", "ScatterWeightedSum", x, f32(0.25), i64(2, 0), x[:2], f32(0.5), outputs=["X0"]),
    case("two", "ScatterWeightedSum", x, f32(0.25), i32(2, 0), x[:2], f32(0.5), x[2:], f32(2),
         outputs=["X0"]),
    case("twice", "ScatterWeightedSum", x, f32(0.25), i32(2, 2), x[:2], f32(0.5), outputs=["X0"]),
    case("out of range", "ScatterWeightedSum", x, f32(0.5), i64(2, 4), x[:2], f32(0.5),
         outputs=["X0"]),
    case("sizes", "ScatterWeightedSum", x, f32(1), i64(2, 0), x[:1], f32(0.5), outputs=["X0"]),
    case("axis 1", "Scatter", x, i64(0, 1, 2, 0, 5, 4).reshape(2, 3), x[:2, :3] * 3),
    case("axis 0", "Scatter", x, i64(0, 1, 2, 3, 3, 1).reshape(1, 6), x[:1] * 3, axis=0),
    case("int64", "Scatter", i64(1, 2, 3, 4).reshape(2, 2), i32(1, 0).reshape(2, 1),
         i64(7, 8).reshape(2, 1)),
    case("out of range", "Scatter", x, i64(0, 1, 6, 0, 5, 4).reshape(2, 3), x[:2, :3] * 3),
    case("simple", "CopyRowsToTensor", x, i64(1, 3), x[0], outputs=["X0"]),
    case("ints", "CopyRowsToTensor", i64(1, 2, 3, 4).reshape(2, 2), i64(1), i64(8, 9),
         outputs=["X0"]),
    case("wrong", "CopyRowsToTensor", x, i64(1, 3), x[0, :3], outputs=["X0"]),
    case("simple", "RemoveDataBlocks", x, i32(1, 3)),
    case("twice", "RemoveDataBlocks", x, i64(3, 1, 3)),
    case("none", "RemoveDataBlocks", x, i64()),
    case("all", "RemoveDataBlocks", x, i64(0, 1, 2, 3)),
    case("out of range", "RemoveDataBlocks", x, i64(4)),
    case("strings", "RemoveDataBlocks", text, i64(0, 3)),
    # Sparse to dense
    case("simple", "SparseToDense", i32(2, 0, 4), f32(1, 2, 3)),
    case("rows", "SparseToDense", i64(2, 0, 2, 1), x),
    case("argument", "SparseToDense", i64(2, 0, 2, 1), x, output_first_dim=6),
    case("input", "SparseToDense", i64(2, 0, 2, 1), x, x3[:, 0].repeat(3, 0)),
    case("int64", "SparseToDense", i64(2, 0, 2), i64(1, 2, 3)),
    case("double", "SparseToDense", i64(2, 0, 2), np.array([1.0, 2, 3])),
    case("empty", "SparseToDense", i64(), f32()),
    case("too small", "SparseToDense", i64(2, 0, 2, 1), x, output_first_dim=2),
    case("negative", "SparseToDense", i64(2, -1, 2, 1), x),
    case("sizes", "SparseToDense", i64(2, 0, 2), x),
    case("simple", "SparseToDenseMask", i64(2, 4, 6), f32(1, 2, 3), np.array(-1, np.float32),
         mask=[4, 5, 2]),
    case("lengths", "SparseToDenseMask", i64(2, 4, 6, 2), f32(1, 2, 3, 4),
         np.array(-1, np.float32), i32(1, 0, 3), mask=[4, 5, 2]),
    case("presence", "SparseToDenseMask", i32(2, 4, 6, 2), f32(1, 2, 3, 4),
         np.array(-1, np.float32), i32(1, 0, 3), mask=[4, 5, 2], return_presence_mask=True,
         outputs=2),
    case("rows", "SparseToDenseMask", i64(2, 4, 6, 2), x, x[0], i32(2, 2), mask=[4, 2],
         return_presence_mask=True, outputs=2),
    case("strings", "SparseToDenseMask", i64(2, 4), text[:2], np.array(b"none", object),
         mask=[4, 5, 2]),
    case("negative", "SparseToDenseMask", i64(2, -4, 6), f32(1, 2, 3), np.array(-1, np.float32),
         mask=[4, 5, 2]),
    case("large id", "SparseToDenseMask", i64(2, 2**33, 6), f32(1, 2, 3),
         np.array(-1, np.float32), mask=[2**33, 6]),
    case("twice", "SparseToDenseMask", i64(2), f32(1), np.array(-1, np.float32), mask=[4, 4]),
    case("no mask", "SparseToDenseMask", i64(2), f32(1), np.array(-1, np.float32)),
    case("types", "SparseToDenseMask", i64(2), f32(1), np.array(-1, np.int64), mask=[4]),
    case("simple", "BatchSparseToDense", i64(2, 1), i64(0, 2, 1), f32(5, 6, 7), dense_last_dim=4),
    case("default", "BatchSparseToDense", i64(2, 0, 1), i64(0, 2, 1), f32(5, 6, 7),
         dense_last_dim=4, default_value=-1.5),
    case("shape", "BatchSparseToDense", i64(2, 1), i64(0, 2, 1), f32(5, 6, 7), x[:2]),
    case("no size", "BatchSparseToDense", i64(2, 1), i64(0, 2, 1), f32(5, 6, 7)),
    case("out of range", "BatchSparseToDense", i64(2, 1), i64(0, 4, 1), f32(5, 6, 7),
         dense_last_dim=4),
    case("simple", "BatchDenseToSparse", i64(2, 1), i64(0, 2, 1), x[:2]),
    case("wrong", "BatchDenseToSparse", i64(2, 1), i64(0, 2, 1), x),
    case("simple", "DenseVectorToIdList", np.array([[0, 1, 0, 2], [0, 0, 0, 0.4], [1, 1, 1, 1]],
         np.float32), outputs=2),
    case("negative", "DenseVectorToIdList", f32(-1, -0.5, -2, 0.6).reshape(2, 2), outputs=2),
    case("simple", "GatherRanges", f32(1, 2, 3, 4, 5, 6), np.array(
        [[[0, 1], [2, 2]], [[4, 1], [5, 1]]], np.int32), outputs=2),
    case("int64", "GatherRanges", i64(1, 2, 3, 4, 5, 6), np.array(
        [[[0, 1], [2, 2]], [[4, 0], [0, 6]]], np.int64), outputs=2),
    case("strings", "GatherRanges", text, np.array([[[0, 1], [2, 2]]], np.int32), outputs=2),
    case("beyond", "GatherRanges", f32(1, 2), np.array([[[0, 1], [1, 2]]], np.int32), outputs=2),
    case("2-d", "GatherRanges", f32(1, 2), np.array([[0, 1]], np.int32), outputs=2),
    case("simple", "GatherRangesToDense", f32(1, 2, 3, 4, 5, 6, 7, 8), np.array(
        [[[2, 4], [0, 2]], [[0, 0], [6, 2]]], np.int32), lengths=[4, 2], outputs=2),
    case("keys", "GatherRangesToDense", f32(1, 2, 3, 4, 5, 6, 7, 8), np.array(
        [[[2, 4], [0, 2]], [[0, 0], [6, 2]]], np.int32), i64(0, 1, 3, 2, 1, 0, 1, 0),
        lengths=[4, 2], outputs=2),
    case("mismatch", "GatherRangesToDense", f32(1, 2, 3, 4, 5, 6, 7, 8), np.array(
        [[[2, 3], [0, 2]], [[0, 4], [6, 2]]], np.int64), lengths=[4, 2], outputs=2),
    case("mismatch refused", "GatherRangesToDense", f32(1, 2, 3, 4, 5, 6, 7, 8), np.array(
        [[[2, 3], [0, 2]], [[0, 4], [6, 2]]], np.int64), lengths=[4, 2], min_observation=2,
        outputs=2),
    case("no lengths", "GatherRangesToDense", f32(1), np.array([[[0, 1]]], np.int64)),
]  # fmt: skip
