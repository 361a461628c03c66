# SPDX-License-Identifier: Apache-2.0
"""Operators that compute nothing, but order other operators or release blobs."""

from __future__ import annotations

from typing import Any

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.torch_operator import TorchOperator


class _Nothing(TorchOperator):
    """No computation; the outputs are in place of inputs.

    A class, since the blobs may hold anything, as queues and counters.
    """

    def RunOnDevice(self) -> None:
        """Do nothing."""

    @staticmethod
    def as_function(*values: Any) -> tuple[Any, ...]:
        """Return the values."""
        return values


@register_operator(
    "AsyncNetBarrier",
    ("cpu", "cuda"),
    inputs="1-*",
    outputs="1-*",
    inplace="0>0*",
    gradient="undefined",
)
class AsyncNetBarrier(_Nothing):
    """No computation; operators before it in a net start before those after it."""


@register_operator(
    "Free", ("cpu", "cuda"), inputs="1-*", outputs="1-*", inplace="0>0*!", gradient="undefined"
)
class Free(_Nothing):
    """Reset the blobs."""

    as_function = None  # type: ignore[assignment]  # it has no values, but an effect

    def RunOnDevice(self) -> None:
        for blob in self.Outputs():
            blob.Reset()


@register_operator("DataCouple", inputs="0-*", outputs="0-*", inplace="0>0*!")
class DataCouple(_Nothing):
    """No computation; an operator that uses an output waits for all inputs."""
