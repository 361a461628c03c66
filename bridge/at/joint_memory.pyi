# SPDX-License-Identifier: Apache-2.0
import torch

from bridge.c10.tensor_impl import TensorImpl

def joined(impls: list[TensorImpl]) -> list[torch.Tensor | None] | None: ...
