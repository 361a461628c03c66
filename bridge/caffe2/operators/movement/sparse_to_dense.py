# SPDX-License-Identifier: Apache-2.0
"""Sparse values converted to dense rows, and vice versa."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INT32, INT64, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import row_indices, rows_at, segment_ids
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.movement import row_kernels


@operator(
    "SparseToDense",
    types={"indices": INTS, "values": (c10.float32, *INTS), "like": None},
    rearranges=(),
    gradient="Gather g0 i0 > 1",
)
def sparse_to_dense(
    indices: Tensor, values: Tensor, like: Tensor | None = None, *, output_first_dim: int = 0
) -> Tensor:
    """The values summed at the rows in the indices.

    The number of rows is `output_first_dim`, that of `like`, or the greatest index + 1.
    """
    fits = indices.dim() == 1 and values.dim() >= 1
    require(fits, "the indices have one dimension, the values at least one", indices, values)
    require(indices.shape[0] == values.shape[0], "there is one value per index", indices, values)
    n = output_first_dim
    if n > 0:
        require(like is None, "the number of rows is an argument or an input, not both")
    elif like is not None:
        require(like.dim() >= 1, "input 2 has at least one dimension", like)
        n = like.shape[0]
    else:
        n = max(int(indices.max()) + 1, 0) if indices.shape[0] else 0
    places = row_indices(indices, n)
    return values.new_zeros((n, *values.shape[1:])).index_add(0, places, values)


def _places(lengths: Tensor, indices: Tensor, width: int) -> Tensor:
    """Return the flat indices in a matrix with rows of `width`."""
    fits = lengths.dim() == 1 and indices.dim() == 1
    require(fits, "lengths and indices have one dimension", lengths, indices)
    ids = segment_ids(lengths, indices.shape[0])
    return ids * width + row_indices(indices, width)


@operator(
    "BatchSparseToDense",
    types={"lengths": INT64, "indices": INT64, "values": (c10.float32,), "like": None},
    rearranges=(),
    gradient="BatchDenseToSparse i0 i1 g0 > 2",
)
def batch_sparse_to_dense(
    lengths: Tensor,
    indices: Tensor,
    values: Tensor,
    like: Tensor | None = None,
    *,
    dense_last_dim: int = -1,
    default_value: float = 0.0,
) -> Tensor:
    """Rows with values at their indices, and `default_value` elsewhere.

    The rows have `dense_last_dim` elements, or as many as those of the matrix `like`.
    """
    width = dense_last_dim
    if like is not None:
        require(like.dim() == 2, "input 3 has two dimensions", like)
        require(width in (-1, like.shape[1]), "dense_last_dim is that of input 3", width, like)
        width = like.shape[1]
    require(width >= 1, "the rows have at least one element", width)
    require(values.numel() == indices.numel(), "there is one value per index", values, indices)
    places = _places(lengths, indices, width)
    n = lengths.shape[0]
    rows = values.new_full((n * width,), default_value)
    return rows.scatter(0, places, values.reshape(-1)).view(n, width)


@operator(
    "BatchDenseToSparse",
    types={"lengths": INT64, "indices": INT64, "dense": (c10.float32,)},
    gradient="BatchSparseToDense i0 i1 g0 i2 > 2",
)
def batch_dense_to_sparse(lengths: Tensor, indices: Tensor, dense: Tensor) -> Tensor:
    """The elements of a matrix at indices of its rows."""
    require(dense.dim() == 2, "the matrix has two dimensions", dense)
    require(lengths.numel() == dense.shape[0], "there is one length per row", lengths, dense)
    return dense.reshape(-1).index_select(0, _places(lengths, indices, dense.shape[1]))


@operator("DenseVectorToIdList", effects=("values",), gradient="none")
def dense_vector_to_id_list(x: Tensor) -> tuple[Tensor, Tensor]:
    """The columns of each row that are not 0: their numbers, and their indices."""
    require(x.dim() == 2, "X has two dimensions", x)
    there = (x + 0.5).int() != 0
    return there.sum(1).int(), there.nonzero()[:, 1].int()


@register_operator(
    "SparseToDenseMask", inputs="3-4", outputs="1-2", gradient="$Gradient i0 g0 i3? > 1"
)
class SparseToDenseMask(TorchOperator):
    """For each id in `mask` its value, or the default.

    Inputs: ids, their values, the default, and lengths if there are several rows. Output 1, with
    `return_presence_mask`: whether there was a value.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        mask = self.GetRepeatedArgument("mask")
        require(bool(mask), "The argument mask is missing.")
        require(min(mask) >= 0, "The ids of mask must not be negative.")
        require(len(set(mask)) == len(mask), "The ids of mask must be different.")
        self._mask = mask
        self._skipped_rows = 0

    def RunOnDevice(self) -> None:
        ids = self.x(0, INTS)
        items: list[Any] = []
        values, default = self.load(1, items), self.load(2, items)
        dtype = self.Input(1).dtype()
        fits = ids.dim() == 1 and values.dim() >= 1
        require(fits, "Ids must have one dimension, values at least one.")
        require(len(ids) == values.size(0), "There must be one value per id.")
        require(self.Input(2).dtype() is dtype, "The default must have the type of the values.")
        require(
            (
                default.dim() + 1 == values.dim()
                and default.numel() == values[0:1].numel() // max(len(values[0:1]), 1)
            )
            or not len(values),
            "The default must have the size of a value.",
        )
        lengths = self.x(3, INT32) if self.InputSize() == 4 else None
        last, segments, sizes = _last_ids(ids, lengths, self._mask)
        self._skipped_rows += len(set(segments[(ids < 0).cpu()].tolist()))
        most = self.GetSingleArgument("max_skipped_indices", 50)
        require(
            self._skipped_rows < most, "Too many rows have negative ids; see max_skipped_indices."
        )
        values = values.reshape(len(ids), *default.shape)
        result = rows_at(torch.cat([default.unsqueeze(0), values]), last + 1)
        self.store(0, result.view(*sizes, *default.shape), items, dtype)
        if self.GetSingleArgument("return_presence_mask", False):
            self.put(1, (last >= 0).view(sizes))


def _last_ids(
    ids: Tensor, lengths: Tensor | None, mask: list[int]
) -> tuple[Tensor, Tensor, list[int]]:
    """Return for each place of a dense tensor the position of its last id, or -1.

    Also the row of each id, and the sizes: rows, if there are lengths, and a column for each id of
    the mask.
    """
    n, sizes = ids.shape[0], [len(mask)]
    rows = torch.zeros(n, dtype=torch.int64, device="cpu")
    if lengths is not None:
        require(lengths.dim() == 1, "lengths have one dimension", lengths)
        rows, sizes = segment_ids(lengths, n).cpu(), [lengths.shape[0], len(mask)]
    count = math.prod(sizes)
    given = ids.long().cpu(), rows, *torch.tensor(mask, dtype=torch.int64, device="cpu").sort()
    last = row_kernels.last_of_ids(rows.new_empty(count), *given, n, len(mask), count // len(mask))
    return last.to(ids.device), rows, sizes


@operator("SparseToDenseMaskGradient", types={"ids": INTS, "lengths": INT32}, effects=("values",))
def sparse_to_dense_mask_gradient(
    ids: Tensor, dy: Tensor, lengths: Tensor | None = None, *, mask: list[int] | None = None
) -> Tensor:
    """(ids, gradients of dense rows, lengths if there are several) -> dvalues.

    Where an id occurs several times, the last value was used and has the gradient.
    """
    require(bool(mask), "there is the argument mask")
    assert mask is not None
    require(ids.dim() == 1, "ids have one dimension", ids)
    last, _, sizes = _last_ids(ids, lengths, mask)
    require(list(dy.shape[: len(sizes)]) == sizes, f"the gradient's sizes begin with {sizes}", dy)
    rows = dy.reshape(len(last), *dy.shape[len(sizes) :])
    places = (last >= 0).nonzero().view(-1)
    result = dy.new_zeros((ids.shape[0], *rows.shape[1:]))
    return result.index_copy(0, last[places], rows.index_select(0, places))
