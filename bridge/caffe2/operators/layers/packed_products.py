# SPDX-License-Identifier: Apache-2.0
"""Products with a matrix of float16, which is converted once.

Follows fbgemm_fp16_pack_op.h and fb_fc_packed_op.h in caffe2/quantization/server, PyTorch 1.8.1.
The weights are rounded to float16; the products are float32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.c10 import TypeMeta
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT, axis_from_front, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.layers.matrix_products import as_matrix

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
