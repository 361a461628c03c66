# SPDX-License-Identifier: Apache-2.0
"""Sparse values converted to dense rows, and vice versa."""

from __future__ import annotations

from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT64, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import row_indices, segment_ids


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
