# SPDX-License-Identifier: Apache-2.0
"""The gradient of SparseToDenseMask."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import segment_ids


@operator("SparseToDenseMaskGradient", types={"ids": INTS, "lengths": INT32}, effects=("values",))
def sparse_to_dense_mask_gradient(
    ids: Tensor, dy: Tensor, lengths: Tensor | None = None, *, mask: list[int] | None = None
) -> Tensor:
    """(ids, gradients of dense rows, lengths if there are several) -> dvalues.

    Where an id occurs several times, the last value was used and has the gradient.
    """
    require(bool(mask), "there is the argument mask")
    assert mask is not None
    column = {one: i for i, one in enumerate(mask)}
    require(ids.dim() == 1, "ids have one dimension", ids)
    n = ids.shape[0]
    segments, sizes = [0] * n, [len(column)]
    if lengths is not None:
        segments = segment_ids(lengths, n).tolist()
        sizes = [lengths.shape[0], *sizes]
    require(list(dy.shape[: len(sizes)]) == sizes, f"the gradient's sizes begin with {sizes}", dy)
    rows = dy.reshape(math.prod(sizes), *dy.shape[len(sizes) :])
    places = {
        row * len(column) + column[one]: i
        for i, (one, row) in enumerate(zip(ids.tolist(), segments, strict=True))
        if one in column
    }
    result = dy.new_zeros((n, *rows.shape[1:]))
    if not places:
        return result
    found, chosen = torch.tensor(
        [list(places.values()), list(places)], dtype=torch.int64, device=dy.device
    )
    return result.index_copy(0, found, rows.index_select(0, chosen))
