# SPDX-License-Identifier: Apache-2.0
"""Rows of a quantized table selected by indices and summed by segments.

Scale and bias follow the numbers of each row, as written by `rowwise_quantized`: in float32, or of
two or four bits float16. A sparse table, which lacks some rows, comes with a mapping (int32) from
indices to its rows, or to -1. Operators "8BitsRowwise" have scales and biases in an input of their
own, (rows, 2), after bytes, weights if weighted, indices and lengths (int32).

Follows lengths_reducer_fused_8bit_rowwise_ops.h, lengths_reducer_fused_nbit_rowwise_ops.h and
lengths_reducer_rowwise_8bit_ops.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import OperatorType, Out, OutputCount, operator
from bridge.caffe2.operators.base.checks import INT32, INTS, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import (
    along_rows,
    check_lengths,
    counts_of,
    segment_ids,
    select_rows,
    sum_segments,
)
from bridge.caffe2.operators.quantized import byte_kernels
from bridge.caffe2.operators.quantized.rowwise_quantized import dequantized, unpacked

# Caffe2 has lengths of int32; NumPy 2 makes int64 of them where NumPy 1 did not.
LOOK_UP = {"table": (c10.uint8,), "indices": INTS, "lengths": INTS, "mapping": INT32}


def _check(indices: Tensor, lengths: Tensor, weights: Tensor | None = None) -> None:
    fits = indices.dim() == 1 and lengths.dim() == 1
    require(fits, "indices and lengths have one dimension", indices, lengths)
    if weights is not None:
        require(weights.shape == indices.shape, "there is one weight per index", weights, indices)


def summed_by_kernel(
    bits: int,
    row: Sequence[int],
    table: Tensor,
    ends: Tensor | None,
    mapping: Tensor | None,
    indices: Tensor,
    lengths: Tensor,
    weights: Tensor | None,
    mean: bool,
    out: Out,
) -> Tensor | None:
    """Return the sums of segments of rows of sizes `row`; None: kernels do not take these.

    For the others see `byte_kernels.sum_rows`, which also says what is raised.
    """
    given = [(table, torch.uint8), (indices, indices.dtype), (lengths, torch.int32)]
    floats = [(one, torch.float32) for one in (ends, weights) if one is not None]
    given += floats if mapping is None else [*floats, (mapping, torch.int32)]
    if not all(takes_kernels(one, dtype=kind) for one, kind in given):
        return None
    n, segments, wide = indices.shape[0], lengths.shape[0], indices.dtype is torch.int64
    made = table.new_empty((segments, *row), dtype=torch.float32) if out is None else out
    sizes = table.shape[0], math.prod(table.shape[1:]), 0 if mapping is None else mapping.numel()
    inputs = table, ends, mapping, indices, lengths, weights
    how = *sizes, n, segments, bits, wide, mean
    return run_kernel(byte_kernels.sum_rows, made, *inputs, *how)


def _reduced(
    bits: int,
    table: Tensor,
    indices: Tensor,
    lengths: Tensor,
    weights: Tensor | None = None,
    mapping: Tensor | None = None,
    mean: bool = False,
    out: Out = None,
) -> Tensor:
    """Return the sums of segments of rows, or the sums over the lengths."""
    tail = 8 if bits == 8 else 4
    require(
        table.dim() == 2 and table.shape[1] > tail, "a table has rows with scale and bias", table
    )
    _check(indices, lengths, weights)
    if lengths.dtype is torch.int64:  # as kernels take them, so that sums have the same bits
        check_lengths(lengths, indices.shape[0])
        lengths = lengths.int()
    width = (table.shape[1] - tail) * (8 // bits)
    made = summed_by_kernel(
        bits, (width,), table, None, mapping, indices, lengths, weights, mean, out
    )
    if made is not None:
        return made
    check_lengths(lengths, indices.shape[0])
    counts = lengths.clamp(min=1)[:, None]
    # A mapping that is just 0 means that no rows were removed.
    if mapping is not None and not (mapping.numel() == 1 and int(mapping) == 0):
        indices, lengths, weights = _there(mapping, indices, lengths, weights)
    chosen = select_rows(table, indices)
    rows = dequantized(chosen) if bits == 8 else unpacked(chosen, bits)
    total = sum_segments(rows, None, lengths, weights=weights)
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
    """Declare the look-ups in tables of numbers of `bits` bits, and those in sparse tables."""
    how: dict[str, Any] = {"types": LOOK_UP, "gradient": "none"}
    dense, sparse = f"Fused{bits}BitRowwise", f"{bits}BitRowwiseSparse"

    @operator(f"SparseLengthsSum{dense}", inputs="3", **how)
    @operator(f"SparseLengthsMean{dense}", inputs="3", **how)
    @operator(f"SparseLengthsSum{sparse}", inputs="4", effects=("errors",), **how)
    @operator(f"SparseLengthsMean{sparse}", inputs="4", effects=("errors",), **how)
    def reduced(
        table: Tensor,
        indices: Tensor,
        lengths: Tensor,
        mapping: Tensor | None = None,
        *,
        kind: OperatorType,
        out: Out = None,
    ) -> Tensor:
        """The sum or the mean of the rows at the indices of each segment; float32.

        Of a sparse table those rows are summed that it has; for Mean the sum is divided by the
        number of indices.
        """
        mean = "Mean" in kind
        return _reduced(bits, table, indices, lengths, mapping=mapping, mean=mean, out=out)

    @operator(f"SparseLengthsWeightedSum{dense}", inputs="4", **how)
    @operator(f"SparseLengthsWeightedSum{sparse}", inputs="5", effects=("errors",), **how)
    def weighted_sum(
        table: Tensor,
        weights: Tensor,
        indices: Tensor,
        lengths: Tensor,
        mapping: Tensor | None = None,
        *,
        out: Out = None,
    ) -> Tensor:
        """The sum of the rows at the indices, or of those in the table, times their weights."""
        return _reduced(bits, table, indices, lengths, weights, mapping, out=out)


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


_OF_BYTES = {"data": (c10.uint8,), "indices": INTS, "lengths": INT32}


def _reduced_bytes(
    data: Tensor,
    indices: Tensor,
    lengths: Tensor,
    scale_bias: Tensor,
    weights: Tensor | None = None,
    mean: bool = False,
    out: Out = None,
) -> Tensor:
    _check(indices, lengths)
    require(data.dim() > 0 and data.shape[0] > 0, "the data have rows", data)
    require(
        scale_bias.shape == (data.shape[0], 2), "there is one scale and bias per row", scale_bias
    )
    n = indices.shape[0]
    if weights is not None:
        require(weights.numel() >= n, "there is one weight per index", weights, indices)
        weights = weights.reshape(-1)[:n]
    given = data, scale_bias, None, indices, lengths, weights, mean, out
    made = summed_by_kernel(8, data.shape[1:], *given)
    if made is not None:
        return made
    scale, bias = (along_rows(one, data) for one in select_rows(scale_bias, indices).unbind(1))
    rows = select_rows(data, indices).float() * scale + bias
    total = sum_segments(rows, None, lengths, weights=weights)
    return total / along_rows(lengths.clamp(min=1), data) if mean else total


@operator("SparseLengthsSum8BitsRowwise", types=_OF_BYTES, gradient="none")
@operator("SparseLengthsMean8BitsRowwise", types=_OF_BYTES, gradient="none")
def sparse_lengths_8bits_rowwise(
    data: Tensor,
    indices: Tensor,
    lengths: Tensor,
    scale_bias: Tensor,
    *,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """The sum or mean of the rows at the indices of each segment, byte * scale + bias; float32."""
    return _reduced_bytes(data, indices, lengths, scale_bias, mean="Mean" in kind, out=out)


@operator("SparseLengthsWeightedSum8BitsRowwise", types=_OF_BYTES, gradient="none")
@operator("SparseLengthsWeightedMean8BitsRowwise", types=_OF_BYTES, gradient="none")
def sparse_lengths_weighted_8bits_rowwise(
    data: Tensor,
    weights: Tensor,
    indices: Tensor,
    lengths: Tensor,
    scale_bias: Tensor,
    *,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """The sum of the rows times their weights, for Mean over the number of rows; float32."""
    return _reduced_bytes(data, indices, lengths, scale_bias, weights, "Mean" in kind, out)
