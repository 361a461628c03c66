# SPDX-License-Identifier: Apache-2.0
"""Summarize: least, greatest, mean and deviation of a blob, as an output or in a file."""

from __future__ import annotations

import os

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("Summarize")
class Summarize(TorchOperator):
    """(least, greatest, mean, deviation of a sample) of input 0, float32; NaN where there is one.

    With `to_file` also as a line of <blob>.summary in the root folder of the workspace, which is
    begun anew with the operator. Raises EnforceNotMet: there are no elements.
    Follows SummarizeOp, caffe2/operators/summarize_op.cc, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._path = None
        if self.GetSingleArgument("to_file", 0):
            folder = str(self._workspace._root_folder)
            self._path = os.path.join(folder, f"{self._definition.inputs[0]}.summary")
            with open(self._path, "w"):
                pass

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT).reshape(-1)
        enforce(len(x) > 0, "Input 0 must not be empty.")
        variance = x.double().var(correction=1) if len(x) > 1 else x.new_zeros(())
        # As found one by one from the first: NaN after it is neither less nor greater.
        known = torch.where(x.isnan() & ~x[0].isnan(), x[0], x)
        found = [known.min(), known.max(), x.double().mean(), variance.sqrt()]
        values = [float(one) for one in found]
        if self._path is not None:
            with open(self._path, "a") as file:
                file.write(" ".join(f"{value:g}" for value in values) + "\n")
        if self.OutputSize():
            self.put(0, torch.tensor(values, dtype=torch.float32))
