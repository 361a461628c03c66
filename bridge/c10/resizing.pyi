# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from bridge.c10.tensor_impl import TensorImpl
from bridge.typing import Dims

def resize_allocated(self: TensorImpl, sizes: Dims, caller: str) -> None: ...
