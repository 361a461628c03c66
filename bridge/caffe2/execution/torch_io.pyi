# SPDX-License-Identifier: Apache-2.0
import torch

from bridge.caffe2.tensor.tensor import Tensor

def operand(tensor: Tensor) -> torch.Tensor: ...
def adopt(tensor: Tensor, result: torch.Tensor) -> None: ...
