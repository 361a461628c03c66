# SPDX-License-Identifier: Apache-2.0
"""Buckets by boundaries, and one-hot encodings."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.c10.errors import EnforceIndexError
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT32, INT64, INTS, require
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import check_lengths, check_rows, segment_ids
from bridge.caffe2.operators.movement import row_kernels


@operator("Bucketize")
def bucketize(x: Tensor, *, boundaries: list[float] | None = None) -> Tensor:
    """The bucket of each element between `boundaries`, int32; 0 for NaN."""
    edges = boundaries or []
    require(edges == sorted(edges), "the boundaries are sorted", edges)
    require(x.dim() >= 1, "X has at least one dimension", x)
    found = torch.bucketize(x, x.new_tensor(edges), out_int32=True)
    return torch.where(x.isnan(), 0, found)


def _lists(values: Tensor, lengths: Tensor) -> list[Tensor]:
    """Return the values as a list of tensors of these lengths, one per column."""
    flat = values.reshape(-1)
    check_lengths(lengths.reshape(-1), flat.shape[0])
    return list(torch.split(flat, lengths.reshape(-1).tolist()))


@operator(
    "BatchBucketize",
    types={"indices": INT32, "lengths": INT32},
    gradient="none",
    effects=("values",),
)
def batch_bucketize(x: Tensor, indices: Tensor, boundaries: Tensor, lengths: Tensor) -> Tensor:
    """The buckets of the columns of X at `indices`, with boundaries per column."""
    columns = indices.reshape(-1).tolist()
    require(x.dim() == 2, "X has two dimensions", x)
    require(indices.dim() == 1, "the indices have one dimension", indices)
    lists = _lists(boundaries, lengths)
    fits = len(lists) == len(columns)
    require(fits, "there is one list of boundaries per column index", lengths, indices)
    if any(not 0 <= column < x.shape[1] for column in columns):
        raise EnforceIndexError(f"An index of {columns} is out of range for {x.shape[1]} columns.")
    found = [
        torch.bucketize(x[:, column].contiguous(), edges, out_int32=True)
        for column, edges in zip(columns, lists, strict=True)
    ]
    if not found:
        return x.new_zeros((x.shape[0], 0), dtype=torch.int32)
    return torch.stack(found, 1)


def _one_hot(indices: Tensor, size: Tensor, rows: Tensor, n: int) -> Tensor:
    """Return `n` rows of zeros, with 1 at the index for each of `rows`."""
    require(size.numel() == 1, "the length of rows is one number", size)
    length = int(size)
    check_rows(indices, length)
    length = max(length, 0)
    zeros = torch.zeros(n * length, dtype=torch.float32, device=indices.device)
    return zeros.index_fill(0, rows * length + indices, 1.0).view(n, length)


@operator("OneHot", types=INT64, gradient="none", effects=("values",))
def one_hot(indices: Tensor, index_size: Tensor, *, out: Out = None) -> Tensor:
    """Rows of `index_size` elements with 1 at the index, else 0; float32."""
    require(indices.dim() == 1, "the indices have one dimension", indices)
    n = indices.shape[0]
    if takes_kernels(indices, dtype=indices.dtype) and index_size.numel() == 1:
        length = max(int(index_size), 0)
        if out is None or out.shape != (n, length):
            out = indices.new_empty((n, length), dtype=torch.float32)
        return row_kernels.one_hot(out, indices, n, length)
    return _one_hot(indices, index_size, torch.arange(n, device=indices.device), n)


@operator(
    "SegmentOneHot",
    types={"lengths": INT32, "indices": INT64, "index_size": INT64},
    gradient="none",
    effects=("values",),
)
def segment_one_hot(lengths: Tensor, indices: Tensor, index_size: Tensor) -> Tensor:
    """Rows of `index_size` elements with 1 at the indices of each segment; float32."""
    fits = lengths.dim() == 1 and indices.dim() == 1
    require(fits, "lengths and indices have one dimension", lengths, indices)
    ids = segment_ids(lengths, indices.shape[0])
    return _one_hot(indices, index_size, ids, lengths.shape[0])


@operator(
    "BatchOneHot",
    types={"x": INTS, "lengths": INT32, "values": "x"},
    gradient="none",
    effects=("values",),
)
def batch_one_hot(x: Tensor, lengths: Tensor, values: Tensor) -> Tensor:
    """Whether each column of X equals each of its values; of the type of X."""
    require(x.dim() >= 1, "X has at least one dimension", x)
    lists = _lists(values, lengths)
    if not x.numel():
        return x.new_zeros(x.shape[0], values.numel())
    rows = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    require(len(lists) == rows.shape[1], "there is one length per column", lengths, x)
    found = [rows[:, column, None] == one for column, one in enumerate(lists)]
    return torch.cat(found, 1).to(x.dtype)


@operator("BatchBucketOneHot", types={"lengths": INT32}, effects=("values",))
def batch_bucket_one_hot(x: Tensor, lengths: Tensor, boundaries: Tensor) -> Tensor:
    """One-hot buckets of each column of X, by boundaries per column; float32."""
    require(x.dim() == 2, "X has two dimensions", x)
    lists = _lists(boundaries, lengths)
    require(len(lists) == x.shape[1], "there is one length per column", lengths, x)
    found = []
    for column, edges in enumerate(lists):
        require(edges.shape[0] > 0, f"there are boundaries for column {column}", lengths.tolist())
        given = x[:, column].contiguous()
        # The middle one of the buckets between equal boundaries.
        place = torch.bucketize(given, edges) + torch.bucketize(given, edges, right=True)
        numbers = torch.arange(edges.shape[0] + 1, device=x.device)
        found.append(torch.div(place, 2, rounding_mode="floor")[:, None] == numbers)
    return torch.cat(found, 1).float() if found else x.new_zeros((x.shape[0], 0))
