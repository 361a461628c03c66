# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Sequence
from typing import Any

from bridge.c10.tensor_impl import TensorImpl
from bridge.c10.type_meta import TypeMeta

def adopt_cuda_memory(
    owner: Any,
    address: int,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    dtype: TypeMeta,
    index: int,
    readonly: bool,
) -> TensorImpl: ...
