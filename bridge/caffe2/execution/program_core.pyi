# SPDX-License-Identifier: Apache-2.0
from typing_extensions import disjoint_base

from bridge.caffe2.execution.operator_core import OperatorCore
from bridge.caffe2.execution.program import Program

@disjoint_base
class Seen: ...

@disjoint_base
class ProgramCore(OperatorCore):
    def _remember_sizes(self) -> bool: ...
    def _has_sizes(self) -> bool: ...
    def _set_program(self, program: Program | None) -> None: ...
