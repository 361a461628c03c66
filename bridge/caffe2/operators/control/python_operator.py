# SPDX-License-Identifier: Apache-2.0
"""The operator type Python, which calls a function; see `definitions.python_functions`."""

from __future__ import annotations

from typing import Any

from bridge import c10
from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.dlpack_tensor import DLPackTensor
from bridge.caffe2.definitions.python_functions import GRADIENT, functions, unpickled_function
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.tensor.tensor import Tensor


def _python_gradient(maker: GradientMaker) -> None:
    given = maker.ints("grad_output_indices") or range(len(maker.op.output))
    wanted = maker.ints("grad_input_indices") or range(len(maker.op.input))
    inputs = [*maker.op.input, *maker.op.output, *map(maker.GO, given)]
    maker.add(maker.op.type + "Gradient", inputs, [maker.GI(i) for i in wanted])


@register_operator(
    "Python", ("cpu", "cuda"), inputs="0-*", outputs="0-*", inplace="any", gradient=_python_gradient
)
@register_operator("PythonGradient", ("cpu", "cuda"), inputs="0-*", outputs="0-*", inplace="any")
class PythonOperator(Operator):
    """Call a Python function with lists of the tensors of inputs and outputs.

    PythonGradient calls the one passed as `grad_f`, which computes a gradient. Its inputs are those
    of the operator, its outputs, and the gradients of its outputs, or of those in
    ``grad_output_indices``; its outputs are the gradients of its inputs, or of those in
    ``grad_input_indices``.

    An input that holds no tensor is passed as its Blob. On a device the function gets copies in
    host memory, and the outputs are copied back, as by GPUFallbackOp there. Follows PythonOp,
    caffe2/python/pybind_state.h, PyTorch 1.8.1.
    """

    _has_effects = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        is_gradient = self._definition.type.endswith("Gradient")
        token = self.GetSingleArgument("token", "")
        if token:
            token += GRADIENT if is_gradient else ""
            if token not in functions:
                raise EnforceKeyError(
                    f"No function of this process has the token {token!r}.", self._definition.type
                )
            self._function, self._pass_workspace = functions[token]
        else:
            # With a default of `bytes`, the argument is not decoded if it happens to be UTF-8.
            builder = "pickled_grad_builder" if is_gradient else "pickled_builder"
            self._function = unpickled_function(self.GetSingleArgument(builder, b""))
            self._pass_workspace = bool(self.GetSingleArgument("pass_workspace", 0))

    def RunOnDevice(self) -> None:
        """Call the function."""
        if self.device.type == c10.CPU:
            given = self._tensors(self.Inputs())
            for i in range(self.OutputSize()):
                self.Output(i)
            self._call(given, self.Outputs())
            return
        inputs = [_on_host(blob) for blob in self.Inputs()]
        copies = dict(zip(self.Inputs(), inputs, strict=True))
        outputs = []
        for blob in self.Outputs():
            copy = copies.get(blob)  # in place of an input
            outputs.append(_empty() if copy is None or copy._tensor is None else copy)
        self._call(self._tensors(inputs), outputs)
        for i, copy in enumerate(outputs):
            self._put(i, copy)

    def _call(self, given: list[Any], outputs: list[Blob]) -> None:
        """Call the function with the arguments for the inputs, and the tensors of `outputs`."""
        found = [self._tensor_of(blob) for blob in outputs]
        if self._pass_workspace:
            self._function(given, found, self._workspace)
        else:
            self._function(given, found)

    def _tensors(self, inputs: list[Blob]) -> list[Any]:
        """Return the arguments of the function for inputs."""
        return [blob if blob._tensor is None else self._tensor_of(blob) for blob in inputs]

    @staticmethod
    def _tensor_of(blob: Blob) -> Any:
        """Return the argument of the function for the tensor of a blob."""
        return blob.as_tensor()

    def _put(self, i: int, copy: Blob) -> None:
        """Set output `i` to the tensor in host memory that the function has written."""
        tensor = copy.as_tensor()._tensor
        if copy is self.OutputBlob(i) or not tensor.dtype():
            return
        if tensor.dtype().is_pod:
            self.Output(i).CopyFrom(tensor)
        else:
            self.OutputBlob(i).Reset(tensor)  # objects are on the host


def _empty() -> Blob:
    blob = Blob()
    blob.Reset(Tensor("cpu"))
    return blob


def _on_host(blob: Blob) -> Blob:
    """Return a blob with a copy of a tensor in host memory; a blob with something else itself."""
    tensor = blob._tensor
    if tensor is None or tensor.GetDeviceType() == c10.CPU:
        return blob
    copy = Blob()
    copy.Reset(Tensor(tensor, "cpu"))
    return copy


@register_operator(
    "PythonDLPack",
    ("cpu", "cuda"),
    inputs="0-*",
    outputs="0-*",
    inplace="any",
    gradient=_python_gradient,
)
@register_operator(
    "PythonDLPackGradient", ("cpu", "cuda"), inputs="0-*", outputs="0-*", inplace="any"
)
class PythonDLPackOperator(PythonOperator):
    """Call a Python function with lists of `DLPackTensor` of the inputs and outputs.

    Nothing is copied: a library reads an input by ``from_dlpack``, and ``output.feed(tensor)``
    makes its own tensor the output. An input that holds no tensor is passed as its Blob.
    """

    def RunOnDevice(self) -> None:
        """Call the function; on a device with the tensors there."""
        if self.device.type != c10.CPU:
            for i in range(self.OutputSize()):
                self.Output(i)
        self._call(self._tensors(self.Inputs()), self.Outputs())

    @staticmethod
    def _tensor_of(blob: Blob) -> DLPackTensor:
        return DLPackTensor(blob)
