# SPDX-License-Identifier: Apache-2.0
import torch

from bridge.c10.tensor_impl import TensorImpl

def write_back(impl: TensorImpl, tensor: torch.Tensor) -> None: ...
