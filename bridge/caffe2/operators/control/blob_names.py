# SPDX-License-Identifier: Apache-2.0
"""GetAllBlobNames: the names of the blobs of a workspace."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator("GetAllBlobNames", inputs="0", outputs="1")
class GetAllBlobNames(TorchOperator):
    """The names of the blobs of the workspace, sorted strings."""

    def RunOnDevice(self) -> None:
        names = [name.encode() for name in sorted(self._workspace._blobs)]
        self.put_strings(0, [len(names)], names)
