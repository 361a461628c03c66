# SPDX-License-Identifier: Apache-2.0
from typing import Any

from typing_extensions import disjoint_base

from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.calls import Call
from bridge.caffe2.execution.operator import Operator

@disjoint_base
class Given: ...

@disjoint_base
class Returned: ...

@disjoint_base
class NetCall(Call): ...

@disjoint_base
class NetProgram:
    def __call__(
        self,
        inputs: tuple[Any, ...],
        keys: dict[str, str],
        parameters: dict[str, Any],
        buffers: dict[str, Any],
    ) -> Any: ...

def merge(
    operators: list[Operator],
    inputs: tuple[Blob, ...],
    parameters: tuple[Blob, ...],
    outputs: tuple[Blob, ...],
) -> NetProgram | None: ...
