# SPDX-License-Identifier: Apache-2.0
"""Rows of a quantized table selected by indices and summed by segments.

Scale and bias follow the numbers of each row, as written by `rowwise_quantized`: in float32, or of
two or four bits float16. A sparse table, which lacks some rows, comes with a mapping (int32) from
indices to its rows, or to -1.

Follows lengths_reducer_fused_8bit_rowwise_ops.h and lengths_reducer_fused_nbit_rowwise_ops.h in
caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import OperatorType, OutputCount, operator
from bridge.caffe2.operators.base.checks import INT32, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import (
    check_lengths,
    counts_of,
    segment_ids,
    select_rows,
    sum_segments,
)
from bridge.caffe2.operators.quantized.rowwise_quantized import dequantized, unpacked

# Caffe2 has lengths of int32; NumPy 2 makes int64 of them where NumPy 1 did not.
LOOK_UP = {"table": (c10.uint8,), "indices": INTS, "lengths": INTS, "mapping": INT32}


def _check(indices: Tensor, lengths: Tensor, weights: Tensor | None = None) -> None:
    fits = indices.dim() == 1 and lengths.dim() == 1
    require(fits, "indices and lengths have one dimension", indices, lengths)
    if weights is not None:
        require(weights.shape == indices.shape, "there is one weight per index", weights, indices)


def _reduced(
    bits: int,
    table: Tensor,
    indices: Tensor,
    lengths: Tensor,
    weights: Tensor | None = None,
    mapping: Tensor | None = None,
    mean: bool = False,
) -> Tensor:
    """Return the sums of segments of rows, or the sums over the lengths."""
    fits = table.dim() == 2 and table.shape[1] > (8 if bits == 8 else 4)
    require(fits, "a table has rows with scale and bias", table)
    _check(indices, lengths, weights)
    check_lengths(lengths, indices.shape[0])
    counts = lengths.clamp(min=1)[:, None]
    # A mapping that is just 0 means that no rows were removed.
    if mapping is not None and not (mapping.numel() == 1 and int(mapping) == 0):
        indices, lengths, weights = _there(mapping, indices, lengths, weights)
    chosen = select_rows(table, indices)
    rows = dequantized(chosen) if bits == 8 else unpacked(chosen, bits)
    numbers = torch.arange(rows.shape[0], device=rows.device)
    total = sum_segments(rows, numbers, lengths, weights=weights)
    return total / counts if mean else total


def _there(
    mapping: Tensor, indices: Tensor, lengths: Tensor, weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the rows of those indices that the mapping has, their lengths and weights."""
    ids = segment_ids(lengths, indices.shape[0])
    rows = select_rows(mapping.reshape(-1), indices)
    there = rows != -1
    kept = counts_of(ids[there], lengths.shape[0]).int()
    return rows[there], kept, None if weights is None else weights[there]


def _declare(bits: int) -> None:
    """Declare the look-ups in tables of numbers of `bits` bits."""
    fused = {name: types for name, types in LOOK_UP.items() if name != "mapping"}

    @operator(f"SparseLengthsSumFused{bits}BitRowwise", types=fused, gradient="none")
    @operator(f"SparseLengthsMeanFused{bits}BitRowwise", types=fused, gradient="none")
    def dense(table: Tensor, indices: Tensor, lengths: Tensor, *, kind: OperatorType) -> Tensor:
        """The sum or the mean of the rows at the indices of each segment; float32."""
        return _reduced(bits, table, indices, lengths, mean="Mean" in kind)

    @operator(f"SparseLengthsWeightedSumFused{bits}BitRowwise", types=fused, gradient="none")
    def weighted_sum(table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor) -> Tensor:
        """The sum of the rows at the indices of each segment times their weights; float32."""
        return _reduced(bits, table, indices, lengths, weights)

    mapped: dict[str, Any] = {"types": LOOK_UP, "gradient": "none", "effects": ("values",)}

    @operator(f"SparseLengthsSum{bits}BitRowwiseSparse", **mapped)
    @operator(f"SparseLengthsMean{bits}BitRowwiseSparse", **mapped)
    def sparse(
        table: Tensor, indices: Tensor, lengths: Tensor, mapping: Tensor, *, kind: OperatorType
    ) -> Tensor:
        """The sum of those rows at the indices of each segment that the table has; float32.

        For Mean it is divided by the number of indices.
        """
        return _reduced(bits, table, indices, lengths, mapping=mapping, mean="Mean" in kind)

    @operator(f"SparseLengthsWeightedSum{bits}BitRowwiseSparse", **mapped)
    def sparse_weighted_sum(
        table: Tensor, weights: Tensor, indices: Tensor, lengths: Tensor, mapping: Tensor
    ) -> Tensor:
        """The sum of the rows that the table has, times their weights; float32."""
        return _reduced(bits, table, indices, lengths, weights, mapping)


for _bits in (2, 4, 8):
    _declare(_bits)


@operator(
    "SparseLengthsSumSparseLookup",
    types={"indices": INTS, "lengths": INTS, "mapping": INT32},
    gradient="none",
    outputs="2-3",
    effects=("values",),
)
def sparse_lengths_sum_sparse_lookup(
    indices: Tensor,
    lengths: Tensor,
    mapping: Tensor,
    weights: Tensor | None = None,
    *,
    outputs: OutputCount,
) -> tuple[Tensor, ...]:
    """Map indices to rows of a sparse table, dropping those mapped to -1.

    Outputs: the rows, lengths, weights.
    """
    _check(indices, lengths, weights)
    require(mapping.dim() == 1, "the mapping has one dimension", mapping)
    require(
        outputs == (2 if weights is None else 3), "there is an output 2 with weights only", outputs
    )
    check_lengths(lengths)
    n = int(lengths.sum())
    require(n <= indices.shape[0], f"there are {n} indices, the sum of the lengths", indices)
    weights = None if weights is None else weights[:n]
    rows, kept, weights = _there(mapping, indices[:n], lengths, weights)
    rows = rows.to(indices.dtype)
    return (rows, kept) if weights is None else (rows, kept, weights)
