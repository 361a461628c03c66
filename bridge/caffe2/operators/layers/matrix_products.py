# SPDX-License-Identifier: Apache-2.0
"""Matrix products and fully connected layers: FC, FCTransposed, MatMul, BatchMatMul.

Those with a packed matrix convert it once: its elements are rounded to float16, the products are
float32. They follow fbgemm_fp16_pack_op.h and fb_fc_packed_op.h in caffe2/quantization/server,
the others fully_connected_op.h, matmul_op.h and batch_matmul_op.h in caffe2/operators, PyTorch
1.8.1.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge.c10 import TypeMeta
from bridge.caffe2.execution.function_operator import OperatorType, Out, OutputCount, operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import FLOAT, axis_from_front, broadcast_sizes, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.layers import layer_kernels

# Multiplications up to which a kernel makes a product: 1.4 microseconds for as many, by torch 3.6;
# for eight times as many 5.2 and 4.9. The user is a net of small layers.
_SMALL = 8192


def as_matrix(x: Tensor, axis: int) -> Tensor:
    """Return a view of `x` as a matrix; its columns are the dimensions from `axis` on."""
    if axis == 1 and x.dim() == 2:
        return x
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


def _matrices(
    x: Tensor, w: Tensor, axis: int, axis_w: int, transposed: bool
) -> tuple[Tensor, Tensor]:
    """Return X as a matrix (M, K), and W as a matrix (K, N)."""
    matrix = as_matrix(x, axis_from_front(axis, x.dim()))
    weights = as_matrix(w, axis_from_front(axis_w, w.dim()))
    if not transposed:
        weights = weights.t()
    require(matrix.shape[1] == weights.shape[0], "X and W agree on the inner size", x, w)
    return matrix, weights


@operator("FC", gradient="$Gradient i0 i1 g0 > 1 2 0")
@operator("FCTransposed", gradient="$Gradient i0 i1 g0 > 1 2 0")
def fc(
    x: Tensor,
    w: Tensor,
    b: Tensor,
    *,
    axis: int = 1,
    axis_w: int = 1,
    kind: OperatorType,
    out: Out = None,
) -> Tensor:
    """Y = X W^T + b. X: (M..., K...), W: (N..., K...), b: (N) -> Y: (M..., N).

    M are X's dimensions before `axis`, N those of W before `axis_w`. FCTransposed: Y = X W + b, W:
    (K..., N...).
    Raises EnforceNotMet: X and W disagree on K, or W and b on N.
    """
    transposed = kind == "FCTransposed"
    matrix, weights = _matrices(x, w, axis, axis_w, transposed)
    require(b.dim() == 1, "the bias has one dimension", b)
    require(weights.shape[1] == b.shape[0], "there is one bias per output", x, w, b)
    outer = x.shape[: axis_from_front(axis, x.dim())]
    rows, depth, columns = (*matrix.shape, b.shape[0])
    if not transposed and takes_kernels(x, w, b) and rows * depth * columns <= _SMALL:
        y = x.new_empty((*outer, columns)) if out is None else out
        return run_kernel(layer_kernels.fully_connected, x, w, b, y, rows, depth, columns)
    if out is not None:
        torch.addmm(b, matrix, weights, out=as_matrix(out, len(outer)))
        return out
    return torch.addmm(b, matrix, weights).view(*outer, b.shape[0])


@operator("FCGradient", outputs="2-3")
@operator("FCTransposedGradient", outputs="2-3")
def fc_gradient(
    x: Tensor,
    w: Tensor,
    dy: Tensor,
    *,
    axis: int = 1,
    axis_w: int = 1,
    kind: OperatorType,
    outputs: OutputCount = 3,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(X, W, dY) -> dW, db, and dX if there is a third output."""
    transposed = kind == "FCTransposedGradient"
    matrix, weights = _matrices(x, w, axis, axis_w, transposed)
    if not x.numel():  # then the gradient is not read
        return w.new_zeros(w.shape), w.new_zeros(weights.shape[1:]), x.new_empty(x.shape)
    rows = dy.reshape(matrix.shape[0], weights.shape[1])
    left, right = (matrix.t(), rows) if transposed else (rows.t(), matrix)
    if out is not None:
        torch.mm(left, right, out=out[0].view(left.shape[0], right.shape[1]))
        torch.sum(rows, 0, out=out[1])
        if outputs == 3:
            torch.mm(rows, weights.t(), out=out[2].view(matrix.shape))
        return tuple(out)
    dw = torch.mm(left, right).view(w.shape)
    if outputs < 3:
        return dw, rows.sum(0)
    return dw, rows.sum(0), torch.mm(rows, weights.t()).view(x.shape)


def _product_gradient(maker: GradientMaker) -> None:
    """C = op(A) op(B): the gradient of a factor is a product of the other one and of dC."""
    maker.enforce(
        maker.op.type == "MatMul" or not maker.argument("broadcast", 0),
        "does not work with argument 'broadcast'",
    )
    trans_a, trans_b = maker.argument("trans_a", 0), maker.argument("trans_b", 0)
    # dC is the second factor if A is transposed in C, or if B is not.
    _factor(maker, 0, 1, bool(trans_a), (trans_b, 1) if trans_a else (0, not trans_b))
    _factor(maker, 1, 0, not trans_b, (1, trans_a) if trans_b else (not trans_a, 0))


def _factor(
    maker: GradientMaker, factor: int, other: int, is_second: bool, transposed: tuple[Any, Any]
) -> None:
    inputs = [maker.I(other), maker.GO(0)] if is_second else [maker.GO(0), maker.I(other)]
    flags = zip(("trans_a", "trans_b"), transposed, strict=True)
    arguments = {name: 1 for name, flag in flags if flag}
    if maker.op.type == "MatMul":
        inputs.append(maker.I(factor))  # MatMul takes the shape of the result from it
        arguments["axis_a" if is_second else "axis_b"] = 1
    maker.add(maker.op.type, inputs, [maker.GI(factor)], arguments, copied=False)


@operator("MatMul", types={"shape": None}, gradient=_product_gradient)
def mat_mul(
    a: Tensor,
    b: Tensor,
    shape: Tensor | None = None,
    *,
    axis_a: int = 1,
    axis_b: int = 1,
    trans_a: int = 0,
    trans_b: int = 0,
    out: Out = None,
) -> Tensor:
    """Y = A B, each a matrix or its transpose, with the dimensions from its axis on as columns.

    An optional third input has the shape of Y.
    Raises EnforceNotMet: the inner sizes disagree.
    """
    left = as_matrix(a, axis_from_front(axis_a, a.dim()))
    right = as_matrix(b, axis_from_front(axis_b, b.dim()))
    left, right = left.t() if trans_a else left, right.t() if trans_b else right
    require(left.shape[1] == right.shape[0], "the inner sizes of A and B agree", a, b)
    sizes = (left.shape[0], right.shape[1])
    result = sizes if shape is None else tuple(shape.shape)
    fits = math.prod(result) == math.prod(sizes)
    require(fits, "the shape in input 2 has as many elements as Y", sizes, result)
    if out is not None:
        torch.mm(left, right, out=out.view(sizes))
        return out
    return torch.mm(left, right).view(result)


@operator("BatchMatMul", gradient=_product_gradient)
def batch_mat_mul(
    a: Tensor,
    b: Tensor,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    broadcast: bool = False,
    out: Out = None,
) -> Tensor:
    """Y[i] = A[i] B[i], products of the last two dimensions.

    The batch dimensions are equal, or broadcast as in NumPy with the argument `broadcast`. A vector
    A is a row, a vector B a column; the product of two vectors has the shape (1,).
    Raises EnforceNotMet: inner sizes or batch dimensions disagree.
    """
    require(a.dim() > 0 and b.dim() > 0, "A and B have at least one dimension", a, b)
    left = a.unsqueeze(0) if a.dim() == 1 else a.mT if trans_a else a
    right = b.unsqueeze(1) if b.dim() == 1 else b.mT if trans_b else b
    require(left.shape[-1] == right.shape[-2], "the inner sizes of A and B agree", a, b)
    batch, others = left.shape[:-2], right.shape[:-2]
    if a.dim() > 1 and b.dim() > 1 and not broadcast:
        rank = max(len(batch), len(others))
        same = (1,) * (rank - len(batch)) + batch == (1,) * (rank - len(others)) + others
        require(same, "A and B have the same batch dimensions, unless `broadcast` is set", a, b)
    try:
        sizes = broadcast_sizes(batch, others)
    except RuntimeError:
        require(False, "the batch dimensions of A and B broadcast", a, b)
    rows = () if a.dim() == 1 else (left.shape[-2],)
    columns = () if b.dim() == 1 else (right.shape[-1],)
    if out is not None:
        torch.matmul(left, right, out=out.view(*sizes, left.shape[-2], right.shape[-1]))
        return out
    return torch.matmul(left, right).view((*sizes, *rows, *columns) if rows or columns else (1,))


_LARGEST_HALF = 65504.0


class PackedWeight:
    """A matrix (K, N) of float32, rounded to float16."""

    def __init__(self, matrix: Tensor | None = None) -> None:
        self.matrix = matrix


TypeMeta.Register(PackedWeight)


@register_operator("FbGemmPack", inputs="1", outputs="1", inplace="0>0")
@register_operator("FbGemmPackTranspose", inputs="1", outputs="1", inplace="0>0")
class FbGemmPack(TorchOperator):
    """Pack the weights (N, K) of an FC for FbFCPacked; for FbGemmPackTranspose they are (K, N)."""

    def RunOnDevice(self) -> None:
        w = self.x(0, FLOAT)
        require(w.dim() >= 1, f"The weights are (N, K), not {list(w.shape)}.")
        half = as_matrix(w, 1).clamp(-_LARGEST_HALF, _LARGEST_HALF).half().float()
        transposed = self._definition.type == "FbGemmPackTranspose"
        self.OutputBlob(0).Reset(PackedWeight((half if transposed else half.t()).contiguous()))


@register_operator("FbFCPacked", inputs="3", outputs="1")
class FbFCPacked(TorchOperator):
    """(X, packed weights, b) -> X W^T + b; the dimensions of X from `axis` (1) on are K.

    Raises EnforceNotMet: sizes do not fit.
    """

    def RunOnDevice(self) -> None:
        x, b = self.x(0, FLOAT), self.x(2, FLOAT)
        matrix = self.Input(1, PackedWeight).matrix
        require(matrix is not None, "The weights were not packed.")
        axis = axis_from_front(self.GetSingleArgument("axis", 1), x.dim())
        rows = as_matrix(x, axis)
        require(
            rows.shape[1] == matrix.shape[0] and list(b.shape) == [matrix.shape[1]],
            f"Weights of sizes {list(matrix.shape)} do not fit X of sizes {list(x.shape)} and b of "
            f"sizes {list(b.shape)}.",
        )
        y = torch.addmm(b.reshape(-1), rows, matrix)
        self.put(0, y.view(*x.shape[:axis], y.shape[-1]))
