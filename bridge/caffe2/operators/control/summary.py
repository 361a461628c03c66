# SPDX-License-Identifier: Apache-2.0
"""Summarize: minimum, maximum, mean and standard deviation of a tensor."""

from __future__ import annotations

from typing import Any

import torch

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.control.output_file import output_file


@register_operator("Summarize", ("cpu", "cuda"), inputs="1", outputs="0-1", gradient="undefined")
class Summarize(TorchOperator):
    """(minimum, maximum, mean, standard deviation of a sample) of input 0, float32.

    With `to_file` also as a line of <blob>.summary in the workspace's root folder, which is
    truncated when the operator is created. NaN elements make mean and deviation NaN.
    Raises EnforceNotMet: input 0 is empty.
    Follows SummarizeOp, caffe2/operators/summarize_op.cc, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._path = output_file(self, ".summary")

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT).reshape(-1)
        require(len(x) > 0, "Input 0 must not be empty.")
        variance = x.double().var(correction=1) if len(x) > 1 else x.new_zeros(())
        # As compared one by one from the first: a NaN after it is neither less nor greater.
        known = torch.where(x.isnan() & ~x[0].isnan(), x[0], x)
        found = [known.min(), known.max(), x.double().mean(), variance.sqrt()]
        values = [float(one) for one in found]
        if self._path is not None:
            with open(self._path, "a") as file:
                file.write(" ".join(f"{value:g}" for value in values) + "\n")
        if self.OutputSize():
            self.put(0, torch.tensor(values, dtype=torch.float32, device=x.device))
