# SPDX-License-Identifier: Apache-2.0
"""Operator types that Caffe2 registers, and that cannot be run there either."""

from __future__ import annotations

from bridge.annotation import NoReturn
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.registry import register_operator


class _Refused(Operator):
    reason = ""

    def RunOnDevice(self) -> NoReturn:
        op_type = self._definition.type
        raise EnforceNotMet(f"{op_type} cannot be run: {self.reason}", op_type)


@register_operator("Int8GenQuantParams", inputs="2", outputs="1")
class Int8GenQuantParams(_Refused):
    """Parameters for the values of a histogram."""

    reason = (
        "its second input is a blob of an Int8QuantScheme, which no operator of PyTorch 1.8.1 "
        "makes. The operator Quantize of the engine DNNLOWP chooses parameters by the range."
    )


@register_operator("Onnxifi", devices=("cpu", "cuda"), inputs="0-*", outputs="0-*")
class Onnxifi(_Refused):
    """A subgraph for an ONNXIFI backend."""

    reason = "there is no library of an ONNXIFI backend. Run the net before `onnxifi_net`."
