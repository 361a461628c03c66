# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from typing_extensions import CapsuleType, disjoint_base

from bridge.c10.tensor_impl import TensorImpl

@disjoint_base
class DLPackProducer:
    def __init__(self, impl: TensorImpl, immutable: bool = False) -> None: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
