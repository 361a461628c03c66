# SPDX-License-Identifier: Apache-2.0
"""The operator type Python, which calls a function; see `definitions.python_functions`."""

from __future__ import annotations

from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.blobs.dlpack_tensor import DLPackTensor
from bridge.caffe2.definitions.python_functions import GRADIENT, functions, unpickled_function
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.registry import register_operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "PythonDLPackGradientOperator",
    "PythonDLPackOperator",
    "PythonGradientOperator",
    "PythonOperator",
]


@register_operator("Python")
class PythonOperator(Operator):
    """Call a Python function with lists of the tensors of inputs and outputs.

    An input that holds no tensor is passed as its Blob. Follows PythonOp,
    caffe2/python/pybind_state.h, PyTorch 1.8.1.
    """

    _has_effects = True
    _token_suffix = ""
    _builder = "pickled_builder"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        token = self.GetSingleArgument("token", "")
        if token:
            token += self._token_suffix
            if token not in functions:
                raise EnforceKeyError(
                    f"No function of this process has the token {token!r}.",
                    self._definition.type,
                )
            self._function, self._pass_workspace = functions[token]
        else:
            # With a default of `bytes`, the argument is not decoded if it happens to be UTF-8.
            self._function = unpickled_function(self.GetSingleArgument(self._builder, b""))
            self._pass_workspace = bool(self.GetSingleArgument("pass_workspace", 0))

    def RunOnDevice(self) -> None:
        """Call the function."""
        inputs, outputs = self._tensors()
        if self._pass_workspace:
            self._function(inputs, outputs, self._workspace)
        else:
            self._function(inputs, outputs)

    def _tensors(self) -> tuple[list[Any], list[Any]]:
        """Return what the function gets for the inputs and the outputs."""
        inputs = [blob if blob._tensor is None else blob.as_tensor() for blob in self.Inputs()]
        outputs = []
        for i in range(self.OutputSize()):
            self.Output(i)
            outputs.append(self.OutputBlob(i).as_tensor())
        return inputs, outputs


@register_operator("PythonGradient")
class PythonGradientOperator(PythonOperator):
    """Call the function passed as `grad_f`, which computes a gradient.

    Inputs: those of the operator, its outputs, and the gradients of its outputs, or of those in
    ``grad_output_indices``. Outputs: the gradients of its inputs, or of those in
    ``grad_input_indices``.
    """

    _token_suffix = GRADIENT
    _builder = "pickled_grad_builder"


@register_operator("PythonDLPack")
class PythonDLPackOperator(PythonOperator):
    """Call a Python function with lists of `DLPackTensor` of the inputs and outputs.

    Nothing is copied: a library reads an input by ``from_dlpack``, and ``output.feed(tensor)``
    makes its own tensor the output. An input that holds no tensor is passed as its Blob.
    """

    def _tensors(self) -> tuple[list[Any], list[Any]]:
        inputs = [blob if blob._tensor is None else DLPackTensor(blob) for blob in self.Inputs()]
        return inputs, [DLPackTensor(self.OutputBlob(i)) for i in range(self.OutputSize())]


@register_operator("PythonDLPackGradient")
class PythonDLPackGradientOperator(PythonDLPackOperator):
    """Call the function passed as `grad_f` with lists of `DLPackTensor`; see PythonGradient."""

    _token_suffix = GRADIENT
    _builder = "pickled_grad_builder"
