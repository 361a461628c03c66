# SPDX-License-Identifier: Apache-2.0
from typing import Any

from typing_extensions import disjoint_base

from bridge.caffe2.execution.calls import Call

def gradient_signature(
    inputs: list[Any], keys: dict[str, str], parameters: dict[str, Any], buffers: dict[str, Any]
) -> bytes | None: ...

@disjoint_base
class RecordedCalls:
    def __init__(self, calls: list[Call], slots: int, results: tuple[int, ...]) -> None: ...
    def __call__(
        self,
        inputs: list[Any],
        keys: dict[str, str],
        parameters: dict[str, Any],
        buffers: dict[str, Any],
    ) -> list[Any]: ...
