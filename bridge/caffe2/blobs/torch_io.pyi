# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
import torch

from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.tensor.tensor import Tensor

def operand(tensor: Tensor) -> torch.Tensor: ...
def adopt(tensor: Tensor, result: torch.Tensor) -> None: ...
def put(blob: Blob, result: torch.Tensor) -> None: ...
