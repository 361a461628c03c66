# SPDX-License-Identifier: Apache-2.0
"""Softmax and normalization of rows, and their gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import axis_from_front, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.layers import softmax_kernels
from bridge.caffe2.operators.layers.matrix_products import as_matrix

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
        return run_kernel(softmax_kernels.softmax, x, y, *rows.shape)
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
