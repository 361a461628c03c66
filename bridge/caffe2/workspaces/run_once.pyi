# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.operator_core import DefinitionCore

def RunOperatorOnce(operator: Any) -> bool: ...
def run_operator(
    table: BlobTable, definition: DefinitionCore, caller: str, times: int = 1
) -> Operator: ...
