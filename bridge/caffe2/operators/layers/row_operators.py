# SPDX-License-Identifier: Apache-2.0
"""Softmax, and operators that scale, permute, normalize or pad rows."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.operators.base.checks import (
    INT32,
    INTS,
    assert_traced,
    axis_from_front,
    has_values,
    require,
    require_all,
    require_range,
)
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import along_rows
from bridge.caffe2.operators.layers import layer_kernels
from bridge.caffe2.operators.layers.matrix_products import as_matrix

_ANY_PLACE = ",".join(f"{i}>{o}" for i in range(6) for o in range(4))


@operator("ScaleBlobs", inplace=_ANY_PLACE, inputs="1-*", outputs="1-*")
def scale_blobs(*xs: Tensor, scale: float = 1.0, outputs: OutputCount = 0) -> list[Tensor]:
    """Each input times `scale`, in the output of the same number."""
    require(outputs in (0, len(xs)), "there is one output per input", outputs, len(xs))
    return [x * scale for x in xs]


@operator(
    "SquareRootDivide",
    inplace="0>0",
    types={"scale": (c10.float32, *INTS)},
    gradient="SquareRootDivide g0 i1 > 0",
)
def square_root_divide(x: Tensor, scale: Tensor, *, out: Out = None) -> Tensor:
    """Each row of X divided by the square root of its number in `scale`, unless that is 0."""
    fits = x.dim() > 0 and scale.dim() > 0 and scale.shape[0] == scale.numel() == x.shape[0]
    require(fits, "there is one number per row of X", scale, x)
    require_all(scale >= 0, "the numbers are not negative")
    factor = torch.rsqrt(scale.to(x.dtype)).masked_fill(scale == 0, 1.0)
    return torch.mul(x, along_rows(factor, x), out=out)


@operator("BatchPermutation", types={"indices": INT32}, gradient="$Gradient i1 g0 > 0")
def batch_permutation(x: Tensor, indices: Tensor, *, out: Out = None) -> Tensor:
    """The rows of X at the indices, an int32 permutation."""
    require(indices.dim() == 1 and x.dim() > 0, "X has dimensions, the indices one", x, indices)
    n = x.shape[0]
    require(indices.shape[0] == n, "there is one index per row", indices, x)
    if has_values(indices):
        run_kernel(_checked_permutation, indices)
    else:
        assert_traced(
            indices,
            "the indices are a permutation",
            lambda x: x.sort()[0] == torch.arange(n, device=x.device),
        )
    return torch.index_select(x, 0, indices, out=out)


def _checked_permutation(indices: Tensor) -> Tensor:
    given = indices.tolist()
    require(sorted(given) == list(range(len(given))), "the indices are a permutation", given)
    return indices


@operator("BatchPermutationGradient", types={"indices": INT32})
def batch_permutation_gradient(indices: Tensor, dy: Tensor) -> Tensor:
    """(indices, dY) -> dX: the rows moved back to their original indices."""
    n = dy.shape[0] if dy.dim() else 0
    require(indices.dim() == 1 and indices.shape[0] == n, "there is one index per row", indices)
    require_range("indices", indices, n)
    return torch.zeros_like(dy).index_copy(0, indices.long(), dy)


def _writable(out: Out, x: Tensor) -> Tensor:
    """Return the buffer of the output, which holds `x`, or a copy of `x`."""
    return x.clone() if out is None else out if out is x else out.copy_(x)


def _selected(x: Tensor, indices: Tensor) -> list[int]:
    """Return the numbers of the rows. Raises EnforceNotMet: one is out of range."""
    require(x.dim() > 0, "the parameters have at least one dimension", x)
    require_range("rows", indices, x.shape[0])
    return indices.reshape(-1).tolist()


@operator(
    "SparseNormalize",
    inplace="0>0!",
    types={"indices": INTS, "grad": None},
    gradient="undefined",
    effects=("values",),
)
@operator(
    "Float16SparseNormalize",
    inplace="0>0!",
    types={"param": c10.float16, "indices": INTS, "grad": None},
    gradient="undefined",
    effects=("values",),
)
def sparse_normalize(
    param: Tensor,
    indices: Tensor,
    grad: Tensor | None = None,
    *,
    use_max_norm: bool = True,
    norm: float = 1.0,
    out: Out = None,
) -> Tensor:
    """Scale the rows at the indices to the norm `norm`, in place.

    Only longer rows, unless `use_max_norm` is not set.
    """
    require(norm >= 0, "the norm is not negative", norm)
    rows = _selected(param, indices)
    x = _writable(out, param)
    for place in rows:
        row = x[place].float()
        length = torch.linalg.vector_norm(row)
        number = float(length.detach())
        if not use_max_norm or number > norm:
            x[place] = row * (norm / (1e-12 + (length if row.requires_grad else number)))
    return x


class _Regularizer:
    """Arguments `p` (2), 1 or 2, and `reg_lambda` (1e-5), the weight."""

    takes = "float p, float reg_lambda"

    def __init__(self, arguments: Arguments) -> None:
        self.p = arguments.single("p", 2.0)
        self.weight = arguments.single("reg_lambda", 1e-5)
        require(self.p in (1, 2), "p is 1 or 2", self.p)
        require(0 < self.weight < 1, "reg_lambda is between 0 and 1", self.weight)


@operator(
    "SparseLpRegularizer",
    inplace="0>0!",
    types={"indices": INTS, "grad": None},
    effects=("values",),
)
def sparse_lp_regularizer(
    param: Tensor,
    indices: Tensor,
    grad: Tensor | None = None,
    *,
    regularizer: _Regularizer,
    out: Out = None,
) -> Tensor:
    """Shrink the rows at the indices by the L1 or L2 regularizer, in place."""
    rows = _selected(param, indices)
    x = _writable(out, param)
    for place in rows:
        if regularizer.p == 2:
            x[place] *= 1 - regularizer.weight
        else:
            row = x[place]
            x[place] = torch.sign(row) * (row.abs() - regularizer.weight).clamp(min=0)
    return x


@operator("VariableLengthSequencePadding", inplace="0>0", types={"lengths": INT32})
def variable_length_sequence_padding(x: Tensor, lengths: Tensor, *, out: Out = None) -> Tensor:
    """X: (time, batch, n) with 0 after the end of each sequence; lengths: (batch) of int32."""
    require(x.dim() == 3, "X has three dimensions", x)
    require(lengths.numel() == x.shape[1], "there is one length per sequence", lengths, x)
    places = torch.arange(x.shape[0], device=x.device)
    beyond = places.view(-1, 1) >= lengths.reshape(1, -1)
    return torch.where(beyond.unsqueeze(2), x.new_zeros(()), x, out=out)


@operator("SinusoidPositionEncoding", types={"positions": INTS})
def sinusoid_position_encoding(
    positions: Tensor, *, embedding_size: int = 100, alpha: float = 10000.0, amplitude: float = 1.0
) -> Tensor:
    """`amplitude` times sines and cosines of the positions of rows: (m, k) -> (m, k, size).

    The wave lengths go up to `alpha`; all k elements of a row have the position of the first one.
    """
    x, size = positions, embedding_size
    require(x.dim() == 2 and x.shape[1] > 0, "the positions are a matrix that is not empty", x)
    require(size > 0, "embedding_size is positive", size)
    # In float32 and from the smaller end on, as in Caffe2: sines of large numbers amplify
    # rounding errors.
    like: Any = {"dtype": torch.float32, "device": x.device}
    low = x[:, :1].float().log()
    high = low - torch.full((), alpha, **like).log() * torch.full((), (size - 1) / size, **like)
    i = torch.arange(size, device=x.device)
    step = (high - low) / max(size - 1, 1)
    upward = torch.where(i == size - 1, high, low + i * step)
    downward = torch.where(i == 0, low, high - (size - 1 - i) * step)
    waves = torch.where(high.abs() < low.abs(), downward, upward).exp()
    waves = waves + (i % 2) * torch.full((), math.pi / 2, **like)
    rows = waves.sin() * amplitude
    return rows.unsqueeze(1).expand(x.shape[0], x.shape[1], size).clone()


_TINY = 2.0**-149  # the smallest float32 above 0: a row of norm 0 is one of zeros
SHORT = 16  # elements of a row; torch's kernel is slow for fewer


@operator("Softmax", gradient="$Gradient o0 g0 > 0")
def softmax(x: Tensor, *, axis: int = 1, out: Out = None) -> Tensor:
    """Y = exp(X) / the sum of exp(X) over the dimensions from `axis` on.

    Follows SoftmaxOp, caffe2/operators/softmax_op.cc, PyTorch 1.8.1.
    """
    axis = axis_from_front(axis, x.dim())
    rows = as_matrix(x, axis)
    if takes_kernels(x) and 0 < rows.shape[1] < SHORT:
        y = torch.empty_like(x) if out is None else out
        return run_kernel(layer_kernels.softmax, x, y, *rows.shape)
    if out is None:
        return torch.softmax(rows, 1).view(x.shape)
    torch._softmax(rows, 1, False, out=as_matrix(out, axis))
    return out


@operator("SoftmaxGradient")
def softmax_gradient(y: Tensor, dy: Tensor, *, axis: int = 1, out: Out = None) -> Tensor:
    """(Y, dY) -> dX = Y * (dY - sum(Y * dY) of the row)."""
    require(y.numel() == dy.numel(), "Y and dY have the same shape", y, dy)
    axis = axis_from_front(axis, y.dim())
    rows = as_matrix(y, axis)
    drows = dy.view(rows.shape)
    if y.requires_grad or dy.requires_grad or not rows.numel():
        return (rows * (drows - (rows * drows).sum(1, keepdim=True))).view(y.shape)
    back = torch._softmax_backward_data
    if out is None:
        return back(drows, rows, 1, y.dtype).view(y.shape)
    back(drows, rows, 1, y.dtype, grad_input=as_matrix(out, axis))
    return out


@operator("Normalize", gradient="$Gradient i0 g0 > 0")
def normalize(x: Tensor, *, axis: int = -1, out: Out = None) -> Tensor:
    """Y = X / the 2-norm of X along dimension `axis`, which is at least 1e-12."""
    axis = axis_from_front(axis, x.dim())
    norm = torch.linalg.vector_norm(x, 2, axis, keepdim=True)
    return torch.div(x, norm.clamp(min=1e-12), out=out)


@operator("NormalizeL1")
def normalize_l1(x: Tensor, *, axis: int = -1, out: Out = None) -> Tensor:
    """Y = X / the sum of |X| along dimension `axis`; zeros stay zeros."""
    axis = axis_from_front(axis, x.dim())
    norm = torch.sum(torch.abs(x), axis, keepdim=True)  # vector_norm takes 17 times as long
    return torch.div(x, norm.clamp(min=_TINY), out=out)


@operator("NormalizeGradient")
def normalize_gradient(x: Tensor, dy: Tensor, *, axis: int = -1, out: Out = None) -> Tensor:
    """(X, dY) -> dX of Normalize."""
    axis = axis_from_front(axis, x.dim())
    norm = torch.linalg.vector_norm(x, 2, axis, keepdim=True).clamp(min=1e-12)
    inner = (x * dy).sum(axis, keepdim=True)
    return torch.sub(dy / norm, x * (inner / norm**3), out=out)
