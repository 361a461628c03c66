# SPDX-License-Identifier: Apache-2.0
"""Rows scattered to indices, and rows removed.

The operators that must work in place write their rows into the input's memory, which is `out`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT64, INTS, NUMBERS, axis_from_front, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import row_indices
from bridge.caffe2.operators.movement import row_kernels


@operator(
    "ScatterAssign",
    inplace="0>0!",
    types={
        "data": (c10.float32, c10.float16, c10.uint8, c10.int32, c10.int64, c10.float64),
        "indices": INTS,
        "slices": "data",
    },
    gradient="undefined",
)
def scatter_assign(data: Tensor, indices: Tensor, slices: Tensor, *, out: Out = None) -> Tensor:
    """Assign slices to the rows of the data at the indices, in place."""
    require(data.dim() > 0, "the data have at least one dimension", data)
    n, rows = indices.numel(), data.shape[0]
    row = math.prod(data.shape[1:])
    require(slices.numel() == row * n, f"there are {n} rows of {row} elements", slices)
    target = data.clone() if out is None else out
    if takes_kernels(data, slices, dtype=data.dtype) and takes_kernels(
        indices, dtype=indices.dtype
    ):
        sizes = (n, rows, row, data.element_size())
        return run_kernel(
            row_kernels.assign, target, slices, indices, *sizes, indices.dtype is torch.int64
        )
    places = row_indices(indices, rows)
    return target.index_put_((places,), slices.reshape(n, *data.shape[1:]))


@operator(
    "ScatterWeightedSum",
    inputs="2n+3",
    inplace="0>0!",
    types={"x0": (c10.float32,), "w0": (c10.float32,), "indices": INTS, "others": (c10.float32,)},
    effects=("values",),
    gradient="undefined",
)
def scatter_weighted_sum(
    x0: Tensor, w0: Tensor, indices: Tensor, *others: Tensor, out: Out = None
) -> Tensor:
    """Scale rows and add weighted rows to them, in place.

    Inputs: x, its weight, indices, rows, their weight, rows, their weight, ...
    """
    require(x0.numel() > 0 and x0.dim() > 0, "input 0 has at least one dimension", x0)
    require(len(others) % 2 == 0, "each input of rows is followed by its weight")
    n, rows, width = indices.numel(), x0.shape[0], math.prod(x0.shape[1:])
    for x in others[::2]:
        require(x.numel() == n * width, f"there are {n} rows of {width} elements", x)
    for weight in (w0, *others[1::2]):
        require(weight.numel() == 1, "a weight has one element", weight)
    if takes_kernels(x0, w0, *others) and takes_kernels(indices, dtype=indices.dtype):
        given = x0.clone() if out is None else out
        sizes = (n, rows, width, indices.dtype is torch.int64)
        return run_kernel(
            row_kernels.add_weighted, given, w0, indices, [*others[::2]], [*others[1::2]], *sizes
        )
    places = row_indices(indices, rows)
    factors = [float(weight.item()) for weight in others[1::2]]
    scale = float(w0.item())
    target = x0.clone() if out is None else out
    # one by one: a row that occurs twice is scaled twice
    if scale != 1:
        for place in places.tolist():
            target[place] *= scale
    for x, factor in zip(others[::2], factors, strict=True):
        target.index_add_(0, places, x.reshape(n, *x0.shape[1:]), alpha=factor)
    return target


@operator(
    "Scatter",
    inplace="0>0",
    types={"data": None, "indices": INTS, "updates": "data"},
    gradient="undefined",
)
def scatter(data: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 1) -> Tensor:
    """A copy of the data with the updates at the indices along `axis`.

    Indices may have smaller sizes in other dimensions. The dimensions before the axis, and those
    after it, are each taken as one, whose first elements the indices refer to.
    Follows ScatterOp, caffe2/operators/utility_ops.h, PyTorch 1.8.1.
    """
    axis = axis_from_front(axis, data.dim())
    if not data.numel():
        return data.clone()
    fits = indices.dim() == data.dim() == updates.dim() and indices.numel() == updates.numel()
    what = "indices and updates have the same size, and as many dimensions as the data"
    require(fits, what, indices, updates, data)
    row_indices(indices, data.shape[axis])
    runs, places = _in_runs(data, axis), _in_runs(indices.long(), axis)
    fits = places.shape[0] <= runs.shape[0] and places.shape[2] <= runs.shape[2]
    require(fits, "the indices fit into the data", indices, data)
    updates = updates.reshape(places.shape)
    if data.dtype == torch.uint16:  # torch computes with its bits, not with the type
        runs, updates = runs.view(torch.int16), updates.view(torch.int16)
    return runs.scatter(1, places, updates).view(data.dtype).view(data.shape)


def _in_runs(x: Tensor, axis: int) -> Tensor:
    """Return a view of `x` with three dimensions: those before `axis`, `axis`, those after it."""
    return x.reshape(math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :]))


@operator(
    "CopyRowsToTensor",
    inplace="0>0!",
    types={"data": (c10.float16, c10.float32, c10.float64, *INTS), "indices": INT64, "row": "data"},
    gradient="$Gradient g0 > 0",
)
def copy_rows_to_tensor(data: Tensor, indices: Tensor, row: Tensor, *, out: Out = None) -> Tensor:
    """Assign a row to the rows of the data at the indices, in place."""
    require(data.dim() == 2, "the data have two dimensions", data)
    require(indices.dim() == 1 and row.dim() == 1, "indices and row have one dimension")
    fits = row.shape[0] == data.shape[1]
    require(fits, "width of input tensor should match lengths of row", row, data)
    places = row_indices(indices, data.shape[0])
    target = data.clone() if out is None else out
    return target.index_put_((places,), row)


@operator("RemoveDataBlocks", types=None, effects=("values",), gradient="undefined")
def remove_data_blocks(data: Tensor, indices: Tensor) -> Tensor:
    """The rows of the data without those at the indices."""
    if indices.dim() and not indices.shape[0]:  # of any type
        return data
    require(indices.dtype in (torch.int32, torch.int64), "indices are integers", indices.dtype)
    fits = data.dim() > 0 and indices.dim() == 1
    require(fits, "the indices have one dimension, the data at least one", indices, data)
    keep = torch.ones(data.shape[0], dtype=torch.bool, device=data.device)
    keep[row_indices(indices, data.shape[0])] = False
    return data[keep]


@operator("CopyRowsToTensorGradient", inplace="0>0", types=(c10.float16, *NUMBERS))
def copy_rows_to_tensor_gradient(dy: Tensor) -> Tensor:
    """The gradient of CopyRowsToTensor: that of its output, unchanged."""
    return dy
