# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable

from bridge.c10.tensor_impl import TensorImpl

def set_device_copier(copier: Callable[[TensorImpl, TensorImpl], object]) -> None: ...
def copied_since(src: TensorImpl, reason: str, caller: str) -> TensorImpl: ...
