# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from bridge.c10.tensor_impl import TensorImpl
from bridge.typing import Deleter, TensorLike, TypeLike

def share_external_pointer(
    impl: TensorImpl,
    src: int | TensorLike,
    T: TypeLike | None,
    nbytes: int,
    deleter: Deleter | None,
) -> None: ...
