# SPDX-License-Identifier: Apache-2.0
"""Operators on blobs as such: emptied, and listed."""

from __future__ import annotations

from bridge.caffe2.operators.torch_operator import TorchOperator
from bridge.caffe2.registry import register_operator

__all__: list[str] = []


@register_operator("Free")
class Free(TorchOperator):
    """Have the blobs, outputs that are inputs, hold nothing."""

    def RunOnDevice(self) -> None:
        """See the class."""
        for o in range(self.OutputSize()):
            self.OutputBlob(o).Reset()


@register_operator("GetAllBlobNames")
class GetAllBlobNames(TorchOperator):
    """The names of the blobs of the workspace, strings."""

    def RunOnDevice(self) -> None:
        """See the class."""
        names = [name.encode() for name in sorted(self._workspace._blobs)]
        self.put_strings(0, [len(names)], names)
