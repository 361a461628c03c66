# SPDX-License-Identifier: Apache-2.0
from typing import Any

import torch

from bridge.caffe2.operator_core import OperatorCore
from bridge.caffe2.tensor import Tensor

def operand(tensor: Tensor) -> torch.Tensor: ...
def adopt(tensor: Tensor, result: torch.Tensor) -> None: ...
def in_and_out(operator: OperatorCore, types: Any) -> tuple[torch.Tensor, torch.Tensor] | None: ...
