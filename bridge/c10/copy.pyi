# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable

from bridge.c10.tensor_impl import TensorImpl

def register_device_copy(function: Callable[[TensorImpl, TensorImpl], object]) -> None: ...
def require_copy(copy: bool | None, nbytes: int, reason: str) -> int: ...
def reported_copy(
    src: TensorImpl, reason: str, caller: str, copy: bool | None = None
) -> TensorImpl: ...
