# SPDX-License-Identifier: Apache-2.0
"""Gradients of segments that are reduced, and of what chooses some of many."""

from __future__ import annotations

import numpy as np

from .case import case

r = np.random.RandomState(11)
lengths = np.array([2, 0, 3, 1], np.int32)
ids = np.array([0, 0, 1, 1, 1, 2], np.int32)
mixed = np.array([2, 0, 1, 2, 0, 1], np.int32)
indices = np.array([9, 0, 3, 3, 5, 1], np.int64)
dy4 = r.randn(4, 3).astype(np.float32)
dy3 = r.randn(3, 3).astype(np.float32)
x = r.randn(6, 3).astype(np.float32)
table = r.randn(10, 3).astype(np.float32)
weights = r.rand(6).astype(np.float32)
greatest = np.stack([x[:2].max(0), np.zeros(3, np.float32), x[2:5].max(0), x[5]])
greatest3 = greatest[[0, 2, 3]]
sums = np.stack([np.log(np.exp(x[at]).sum(0)) for at in (slice(2), slice(2, 5), slice(5, 6))])
none = np.zeros((0, 3), np.float32)
no_lengths = np.zeros(0, np.int32)

# fmt: off
CASES = [
    case("lengths_sum", "LengthsIndicesInGradientSumGradient", dy4, lengths, x),
    case("lengths_mean", "LengthsIndicesInGradientMeanGradient", dy4, lengths, x),
    case("sparse_sum", "SparseLengthsIndicesInGradientSumGradient", dy4, lengths, indices),
    case("sparse_mean", "SparseLengthsIndicesInGradientMeanGradient", dy4, lengths, indices),
    case("sparse_weighted", "SparseLengthsIndicesInGradientWeightedSumGradient", weights, dy4,
         lengths, indices),
    case("lengths_weighted", "LengthsWeightedSumGradient", weights, dy4, lengths),
    case("sorted_weighted", "SortedSegmentWeightedSumGradient", weights, dy3, ids),
    case("unsorted_weighted", "UnsortedSegmentWeightedSumGradient", weights, dy3, mixed),
    case("lengths_weights", "LengthsWeightedSumWithMainInputGradient", weights, dy4, lengths, x,
         outputs=2),
    case("sparse_weights", "SparseLengthsIndicesInGradientWeightedSumWithMainInputGradient",
         weights, dy4, lengths, table, indices, outputs=2),
    case("sparse_sum_of_old", "SparseLengthsSumGradient", dy4, lengths),
    case("sparse_sorted_mean", "SparseSortedSegmentMeanGradient", dy3, ids),
    case("sparse_unsorted_weighted", "SparseUnsortedSegmentWeightedSumGradient", weights, dy3,
         mixed),
    case("no_rows", "LengthsIndicesInGradientSumGradient", none, no_lengths, none),
    case("wrong_lengths", "LengthsIndicesInGradientSumGradient", dy3, lengths, x),
    case("lengths_max", "LengthsMaxWithMainInputAndForwardOutputGradient", greatest, dy4, lengths,
         x),
    case("range_sum", "SortedSegmentRangeSumGradient", x, greatest3, dy3, ids),
    case("range_mean", "SortedSegmentRangeMeanGradient", x, greatest3, dy3, ids),
    case("range_max", "SortedSegmentRangeMaxGradient", x, greatest3, dy3, ids),
    case("range_lse", "SortedSegmentRangeLogSumExpGradient", x, sums, dy3, ids),
    case("range_lme", "SortedSegmentRangeLogMeanExpGradient", x, sums, dy3, ids),
    case("front_weighted", "ReduceFrontWeightedSumGradient", weights, dy3,
         np.array([6, 3, 3], np.int64)),
    case("top_k", "TopKGradient", r.randn(3, 2).astype(np.float32),
         np.array([[2, 0], [1, 3], [3, 2]], np.int64), r.randn(3, 4).astype(np.float32)),
    case("top_k_axis", "TopKGradient", r.randn(2, 2, 3).astype(np.float32),
         np.array([[[0, 1, 2], [3, 2, 0]], [[1, 1, 3], [0, 3, 2]]], np.int64),
         r.randn(2, 4, 3).astype(np.float32), axis=1),
    case("top_k_fewer", "TopKGradient", r.randn(2, 3).astype(np.float32),
         np.array([[1, 0, -1], [0, 1, -1]], np.int64), r.randn(2, 2).astype(np.float32)),
    case("flexible_top_k", "FlexibleTopKGradient", r.randn(3, 4).astype(np.float32),
         np.array([1, 3, 2], np.int64), r.randn(6).astype(np.float32),
         np.array([2, 0, 3, 1, 1, 2], np.int64)),
    case("lengths_top_k", "LengthsTopKGradient", lengths,
         np.array([[1, 0], [-1, -1], [2, 0], [0, -1]], np.int32), r.randn(4, 2).astype(np.float32),
         k=2),
    case("mask_one_row", "SparseToDenseMaskGradient", np.array([3, 8, 5, 3], np.int64),
         r.randn(3, 2).astype(np.float32), mask=[5, 3, 7]),
    case("mask_rows", "SparseToDenseMaskGradient", np.array([3, 8, 5, 3, 7, 3], np.int32),
         r.randn(4, 3, 2).astype(np.float32), lengths, mask=[5, 3, 7]),
    case("mask_scalars", "SparseToDenseMaskGradient", np.array([3, 8, 5, 3, 7, 3], np.int32),
         r.randn(4, 3).astype(np.float32), lengths, mask=[5, 3, 7]),
    case("zero", "ZeroGradient", x, outputs=0),
]
# fmt: on
