# SPDX-License-Identifier: Apache-2.0
"""FunctionGradient: the gradient of an operator that a function declares, by torch's autograd."""

from __future__ import annotations

from typing import Any

import torch

from bridge.caffe2.base.messages import as_message
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.registry import class_for, register_operator
from bridge.caffe2.operators.base.torch_operator import TorchOperator

__all__ = ["FunctionGradient"]


@register_operator("FunctionGradient", ("cpu", "cuda"), inputs="1-*", outputs="1-*")
class FunctionGradient(TorchOperator):
    """(the inputs of an operator, gradients of its outputs) -> gradients of its inputs.

    Arguments: `forward`, a net of that operator; `given` and `wanted`, the numbers of the outputs
    and inputs whose gradients are there and wanted. The function is computed again. The bridge adds
    this operator where `operator` was given no gradient; Caffe2 has none like it.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        net = as_message(self._definition.arguments["forward"]["n"], "NetDef", "FunctionGradient")
        self._forward = Definition(net.op[0])
        self._given = list(self.GetRepeatedArgument("given"))
        self._wanted = list(self.GetRepeatedArgument("wanted"))

    def RunOnDevice(self) -> None:
        bound = class_for(self._forward, "FunctionGradient").check(self._forward)
        count = len(self._forward.inputs)
        operands = [self.x(i).detach() for i in range(count)]
        real = [i for i in self._wanted if operands[i].is_floating_point()]
        for i in real:
            operands[i].requires_grad_()
        arguments = dict(bound.arguments)
        if "TargetDevice" in bound.wants:
            arguments[bound.wants["TargetDevice"]] = torch.device(str(self._definition.device))
        with torch.enable_grad():
            returned = bound.function(*operands, **arguments)
        results = returned if isinstance(returned, (tuple, list)) else (returned,)
        pairs = [
            (results[o], self.x(count + place).view(results[o].shape))
            for place, o in enumerate(self._given)
            if results[o].requires_grad
        ]
        slopes: dict[int, torch.Tensor | None] = {}
        if pairs:
            found = torch.autograd.grad(
                [result for result, _ in pairs],
                [operands[i] for i in real],
                [slope for _, slope in pairs],
                allow_unused=True,
            )
            slopes = dict(zip(real, found, strict=True))
        for place, i in enumerate(self._wanted):
            slope = slopes.get(i)
            if slope is None:
                slope = torch.zeros(operands[i].shape, device=operands[i].device)
            self.put(place, slope.clone())
