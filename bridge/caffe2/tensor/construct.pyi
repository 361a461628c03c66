# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from bridge.c10.tensor_impl import TensorImpl
from bridge.typing import ArrayLike, Dims, TypeLike

def from_values(dims: Dims, values: ArrayLike, T: TypeLike | None, caller: str) -> TensorImpl: ...
