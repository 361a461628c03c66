# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from bridge.c10.tensor_impl import TensorImpl
from bridge.typing import DeviceLike, TensorLike

def import_tensor(
    x: TensorLike, device: DeviceLike | None = None, copy: bool | None = None
) -> TensorImpl: ...
