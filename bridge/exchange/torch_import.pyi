# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
import torch

from bridge.c10.tensor_impl import TensorImpl

def import_any_torch(tensor: torch.Tensor, copy: bool | None = None) -> TensorImpl: ...
def import_new_torch(tensor: torch.Tensor) -> TensorImpl: ...
