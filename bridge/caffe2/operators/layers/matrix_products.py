# SPDX-License-Identifier: Apache-2.0
"""Matrix products and fully connected layers: FC, FCTransposed, MatMul, BatchMatMul."""

from __future__ import annotations

import math

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FC", "BatchMatMul", "FCGradient", "FCTransposed", "FCTransposedGradient", "MatMul"]


def as_matrix(x: Tensor, axis: int) -> Tensor:
    """Return a view of `x` as a matrix; its columns are the dimensions from `axis` on."""
    if axis == 1 and x.dim() == 2:
        return x
    rows = math.prod(x.shape[:axis])
    return x.view(rows, math.prod(x.shape[axis:]))


@register_operator("FC")
class FC(FloatOperator):
    """Y = X W^T + b. X: (M..., K...), W: (N..., K...), b: (N) -> Y: (M..., N).

    M are X's dimensions before `axis` (1), N those of W before `axis_w` (1).
    Raises EnforceNotMet: X and W disagree on K, or W and b on N.
    Follows FullyConnectedOp, caffe2/operators/fully_connected_op.h, PyTorch 1.8.1.
    """

    transposed = False

    def RunOnDevice(self) -> None:
        x, w, b = self.x(0), self.x(1), self.x(2)
        axis, matrix, weights = self._matrices(x, w)
        self.enforce(b.dim() == 1, "the bias has one dimension", b)
        self.enforce(weights.shape[1] == b.shape[0], "there is one bias per output", x, w, b)
        y = self.out(0, (*x.shape[:axis], b.shape[0]))
        torch.addmm(b, matrix, weights, out=as_matrix(y, axis))

    def _matrices(self, x: Tensor, w: Tensor) -> tuple[int, Tensor, Tensor]:
        """Return the axis of X, X as a matrix (M, K), and W as a matrix (K, N)."""
        axis = self.axis(x, "axis", 1)
        matrix, weights = as_matrix(x, axis), as_matrix(w, self.axis(w, "axis_w", 1))
        if not self.transposed:
            weights = weights.t()
        self.enforce(matrix.shape[1] == weights.shape[0], "X and W agree on the inner size", x, w)
        return axis, matrix, weights


@register_operator("FCTransposed")
class FCTransposed(FC):
    """Y = X W + b. X: (M..., K...), W: (K..., N...), b: (N) -> Y: (M..., N); see FC."""

    transposed = True


@register_operator("FCGradient")
class FCGradient(FC):
    """(X, W, dY) -> dW, db, and dX if there is a third output.

    Follows FullyConnectedGradientOp, caffe2/operators/fully_connected_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, w, dy = self.x(0), self.x(1), self.x(2)
        _, matrix, weights = self._matrices(x, w)
        rows = dy.reshape(matrix.shape[0], weights.shape[1])
        dw, db = self.out(0, w.shape), self.out(1, weights.shape[1:])
        if not x.numel():  # then the gradient is not read
            dw.zero_()
            db.zero_()
            if self.OutputSize() == 3:
                self.out(2, x.shape)
            return
        if self.transposed:
            torch.mm(matrix.t(), rows, out=dw.view(weights.shape))
        else:
            torch.mm(rows.t(), matrix, out=dw.view(weights.shape[::-1]))
        torch.sum(rows, 0, out=db)
        if self.OutputSize() == 3:
            torch.mm(rows, weights.t(), out=self.out(2, x.shape).view(matrix.shape))


@register_operator("FCTransposedGradient")
class FCTransposedGradient(FCGradient):
    """The gradients of FCTransposed; see FCGradient."""

    transposed = True


@register_operator("MatMul")
class MatMul(FloatOperator):
    """Y = A B, each a matrix or its transpose, with the dimensions from its axis on as columns.

    Arguments: `axis_a` and `axis_b` (1), `trans_a` and `trans_b` (0). An optional third input
    specifies the shape of Y.
    Raises EnforceNotMet: the inner sizes disagree.
    Follows MatMulOp, caffe2/operators/matmul_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        a, b = self.x(0), self.x(1)
        left = as_matrix(a, self.axis(a, "axis_a", 1))
        right = as_matrix(b, self.axis(b, "axis_b", 1))
        if self.GetSingleArgument("trans_a", 0):
            left = left.t()
        if self.GetSingleArgument("trans_b", 0):
            right = right.t()
        self.enforce(left.shape[1] == right.shape[0], "the inner sizes of A and B agree", a, b)
        sizes = (left.shape[0], right.shape[1])
        shape = self.Input(2).shape if self.InputSize() == 3 else sizes
        self.enforce(
            math.prod(shape) == math.prod(sizes),
            "the shape in input 2 has as many elements as Y",
            sizes,
            shape,
        )
        torch.mm(left, right, out=self.out(0, shape).view(sizes))


@register_operator("BatchMatMul")
class BatchMatMul(FloatOperator):
    """Y[i] = A[i] B[i], products of the last two dimensions; arguments `trans_a`, `trans_b`.

    The batch dimensions are equal, or broadcast as in NumPy with the argument `broadcast`. A vector
    A is a row, a vector B a column; the product of two vectors has the shape (1,).
    Raises EnforceNotMet: inner sizes or batch dimensions disagree.
    Follows BatchMatMulOp, caffe2/operators/batch_matmul_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        a, b = self.x(0), self.x(1)
        self.enforce(a.dim() > 0 and b.dim() > 0, "A and B have at least one dimension", a, b)
        left = a.unsqueeze(0) if a.dim() == 1 else self._turned(a, "trans_a")
        right = b.unsqueeze(1) if b.dim() == 1 else self._turned(b, "trans_b")
        self.enforce(left.shape[-1] == right.shape[-2], "the inner sizes of A and B agree", a, b)
        batch, others = left.shape[:-2], right.shape[:-2]
        if a.dim() > 1 and b.dim() > 1 and not self.GetSingleArgument("broadcast", False):
            rank = max(len(batch), len(others))
            same = (1,) * (rank - len(batch)) + batch == (1,) * (rank - len(others)) + others
            self.enforce(
                same, "A and B have the same batch dimensions, unless `broadcast` is set", a, b
            )
        try:
            sizes = torch.broadcast_shapes(batch, others)
        except RuntimeError:
            self.enforce(False, "the batch dimensions of A and B broadcast", a, b)
        rows = () if a.dim() == 1 else (left.shape[-2],)
        columns = () if b.dim() == 1 else (right.shape[-1],)
        y = self.out(0, (*sizes, *rows, *columns) if rows or columns else (1,))
        torch.matmul(left, right, out=y.view(*sizes, left.shape[-2], right.shape[-1]))

    def _turned(self, matrices: Tensor, argument: str) -> Tensor:
        return matrices.mT if self.GetSingleArgument(argument, False) else matrices
