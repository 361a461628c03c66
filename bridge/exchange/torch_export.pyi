# SPDX-License-Identifier: Apache-2.0
import torch

from bridge.c10.tensor_impl import TensorImpl

def torch_operand(impl: TensorImpl) -> torch.Tensor: ...
def export_torch(
    impl: TensorImpl, copy: bool | None = None, writable: bool = False
) -> torch.Tensor: ...
def copy_between_devices(dst: TensorImpl, src: TensorImpl) -> None: ...
