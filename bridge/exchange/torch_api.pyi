# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable

import torch
from typing_extensions import TypeIs

def on_torch_loaded(callback: Callable[[], None]) -> None: ...
def is_torch_tensor(x: object) -> TypeIs[torch.Tensor]: ...
