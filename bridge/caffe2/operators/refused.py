# SPDX-License-Identifier: Apache-2.0
"""Operator types that Caffe2 registers, and that cannot be run there either."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure


@procedure("Int8GenQuantParams", inputs="2", outputs="1")
def int8_gen_quant_params(op: TorchOperator) -> None:
    """Parameters for the values of a histogram."""
    raise EnforceNotMet(
        "Int8GenQuantParams cannot be run: its second input is a blob of an Int8QuantScheme, which "
        "no operator of PyTorch 1.8.1 makes. The operator Quantize of the engine DNNLOWP chooses "
        "parameters by the range.",
        "Int8GenQuantParams",
    )


@procedure("Onnxifi", ("cpu", "cuda"), inputs="0-*", outputs="0-*")
def onnxifi(op: TorchOperator) -> None:
    """A subgraph for an ONNXIFI backend."""
    raise EnforceNotMet(
        "Onnxifi cannot be run: there is no library of an ONNXIFI backend. Run the net before "
        "`onnxifi_net`.",
        "Onnxifi",
    )
