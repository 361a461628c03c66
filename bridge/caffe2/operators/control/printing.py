# SPDX-License-Identifier: Apache-2.0
"""Print and Summarize: a tensor, or figures of it, on standard error or in a file."""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT, NUMBERS_AND_BOOL, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator

# The names of the types in C++.
_NAMES = {
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long int",
    "bool": "bool",
    "uint8": "unsigned char",
    "string": "std::basic_string<char>",
}


@register_operator("Print", ("cpu", "cuda"), inputs="1", outputs="0", gradient="undefined")
class Print(TorchOperator):
    """Print type, sizes and the first `limit` (1000) elements of input 0 in one line.

    On standard error, or with `to_file` in the file <blob>.log in the workspace's root folder,
    which is truncated when the operator is created. Only every `every_n`-th (1) run prints. uint8
    elements are written as bytes.
    Follows PrintOp and TensorPrinter, caffe2/operators/utility_ops.h and caffe2/core/tensor.cc.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._every = self.GetSingleArgument("every_n", 1)
        require(self._every >= 1, "The argument every_n must be at least 1.")
        self._runs = 0
        self._path = output_file(self, ".log")

    def RunOnDevice(self) -> None:
        self._runs += 1
        if (self._runs - 1) % self._every:
            return
        name = self._definition.inputs[0]
        if not self.InputBlob(0).is_tensor():
            self._write(f"Blob {name} is not a tensor".encode())
            return
        tensor = self.Input(0)
        dtype = tensor.dtype()
        values = b",".join(self._values()) if tensor.numel() else b""
        kind = _NAMES.get(dtype.name, dtype.name if dtype else "no type yet")
        sizes = "".join(f"{size}," for size in tensor.sizes())
        self._write(f"Tensor {name} of type {kind}. Dims: ({sizes}): ".encode() + values)

    def _values(self) -> list[bytes]:
        limit = self.GetSingleArgument("limit", 0) or 1000
        dtype = self.Input(0).dtype()
        if dtype is c10.string:
            return self.strings(0)[:limit]
        values = self.x(0, (*NUMBERS_AND_BOOL, c10.uint8)).reshape(-1)[:limit].tolist()
        if dtype is c10.uint8:
            return [bytes([value]) for value in values]
        form = "%g" if dtype in (c10.float32, c10.float64) else "%d"
        return [(form % value).encode() for value in values]

    def _write(self, line: bytes) -> None:
        if self._path is None:
            print(line.decode(errors="backslashreplace"), file=sys.stderr)
            return
        with open(self._path, "ab") as file:
            file.write(line + b"\n")


def output_file(op: TorchOperator, suffix: str) -> str | None:
    """Return the path of <input 0>`suffix` in the workspace's root folder, truncated.

    None unless the argument `to_file` is set.
    """
    if not op.GetSingleArgument("to_file", 0):
        return None
    folder = str(op._workspace._root_folder)
    path = os.path.join(folder, f"{op._definition.inputs[0]}{suffix}")
    with open(path, "wb"):
        pass
    return path


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
