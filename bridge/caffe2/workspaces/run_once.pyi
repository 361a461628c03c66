# SPDX-License-Identifier: Apache-2.0
from typing import Any

from bridge.caffe2.execution.operator_core import DefinitionCore
from bridge.caffe2.workspaces.workspace import Workspace

def RunOperatorOnce(operator: Any) -> bool: ...
def made_in(definition: DefinitionCore, workspace: Workspace, new: list[str]) -> Any: ...
