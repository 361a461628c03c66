# SPDX-License-Identifier: Apache-2.0
from typing import Any

from typing_extensions import disjoint_base

from bridge.c10 import Device
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.operator_def import Definition
from bridge.caffe2.tensor import Tensor
from bridge.caffe2.workspaces import Workspace

@disjoint_base
class DefinitionCore:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    device: Device
    cls: Any
    generation: int
    checked: Any
    def _assign(self, cls: Any, generation: int, plain: bool, writes_last: bool) -> None: ...
    def _place(self, device: Any) -> None: ...

@disjoint_base
class OperatorCore:
    _definition: Definition
    _workspace: Workspace
    def _bind(
        self,
        definition: DefinitionCore,
        workspace: Workspace,
        inputs: tuple[Blob, ...],
        outputs: tuple[Blob, ...],
    ) -> None: ...
    def _get(self, blob: Blob, i: int, T: Any) -> Any: ...
    def _run(self) -> bool: ...
    def Input(self, i: int, T: Any = None) -> Any: ...
    def InputBlob(self, i: int) -> Blob: ...
    def InputSize(self) -> int: ...
    def Inputs(self) -> list[Blob]: ...
    def IsInputOutputAlias(self, i: int, j: int) -> bool: ...
    def Output(
        self,
        i: int,
        dims: Any = None,
        options: Any = None,
        *,
        dtype: Any = None,
        device: Any = None,
    ) -> Tensor: ...
    def OutputBlob(self, i: int) -> Blob: ...
    def OutputSize(self) -> int: ...
    def OutputTensor(
        self,
        i: int,
        dims: Any = None,
        options: Any = None,
        *,
        dtype: Any = None,
        device: Any = None,
    ) -> Tensor: ...
    def OutputTensorAlias(self, i: int, src: Any) -> Tensor: ...
    def OutputTensorCopyFrom(
        self, i: int, options: Any, src: Any, async_: bool = False
    ) -> Tensor: ...
    def OutputTensorOrUndefined(self, i: int) -> Tensor: ...
    def Outputs(self) -> list[Blob]: ...
    def SetOutputTensor(self, i: int, tensor: Any) -> None: ...
    def XOutput(
        self, i: int, dims: Any, options: Any = None, *, dtype: Any = None, device: Any = None
    ) -> Tensor: ...
    def XOutputTensor(
        self, i: int, dims: Any, options: Any = None, *, dtype: Any = None, device: Any = None
    ) -> Tensor: ...

def run_all(operators: list[Any], position: list[int]) -> None: ...
