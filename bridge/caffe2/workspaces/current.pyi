# SPDX-License-Identifier: Apache-2.0
import threading

from typing_extensions import disjoint_base

from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.execution.operator_core import DefinitionCore, OperatorCore

@disjoint_base
class Current:
    workspaces: dict[str, BlobTable]
    @property
    def workspace(self) -> BlobTable: ...
    @property
    def blobs(self) -> dict[str, Blob]: ...
    @property
    def ready(self) -> dict[DefinitionCore, OperatorCore]: ...
    @property
    def name(self) -> str: ...
    @property
    def lock(self) -> threading.RLock: ...
    def put(self, name: str, workspace: BlobTable) -> None: ...
    def enter(self, workspace: BlobTable) -> None: ...

current: Current
