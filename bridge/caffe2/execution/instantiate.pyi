# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.execution.operator_core import DefinitionCore

def instantiate_in(definition: DefinitionCore, table: BlobTable, new: list[str]) -> Any: ...
