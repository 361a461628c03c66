# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable

from bridge.c10.tensor_impl import TensorImpl
from bridge.typing import DeviceLike, TensorLike
from bridge.wrapper import Wrapper

def set_wrapper(cls: type[Wrapper], impl_of: Callable[[Wrapper], TensorImpl]) -> None: ...
def ingest(
    x: TensorLike, device: DeviceLike | None = None, copy: bool | None = None
) -> TensorImpl: ...
