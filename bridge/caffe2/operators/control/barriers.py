# SPDX-License-Identifier: Apache-2.0
"""Operators that compute nothing: they say what comes after what, or that blobs are done with."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.torch_operator import TorchOperator

__all__: list[str] = []


class _Nothing(TorchOperator):
    """Nothing; the outputs are inputs, as they are."""

    def RunOnDevice(self) -> None:
        """See the class."""


@register_operator("AsyncNetBarrier")
class AsyncNetBarrier(_Nothing):
    """Nothing; operators before it in a net start before those after it."""


@register_operator("Free")
class Free(_Nothing):
    """The blobs hold nothing from now on."""

    def RunOnDevice(self) -> None:
        for blob in self.Outputs():
            blob.Reset()


@register_operator("DataCouple")
class DataCouple(_Nothing):
    """Nothing; what uses an output waits for all inputs."""
