# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
import torch

from bridge.c10.tensor_impl import TensorImpl

def joined(impls: list[TensorImpl]) -> list[torch.Tensor | None] | None: ...
