# SPDX-License-Identifier: Apache-2.0
from bridge.c10.tensor_impl import TensorImpl
from bridge.typing import Dims

def resize_allocated(self: TensorImpl, sizes: Dims, caller: str) -> None: ...
