# SPDX-License-Identifier: Apache-2.0
from typing import Any

from typing_extensions import disjoint_base

from bridge.caffe2.execution.tape import Call, Tape

@disjoint_base
class Layout: ...

@disjoint_base
class Operand: ...

@disjoint_base
class Program(Tape):
    is_complete: bool
    def __init__(
        self,
        calls: list[Call],
        inputs: list[Any],
        outputs: list[Any],
        slots: int,
        results: tuple[int, ...] | None,
    ) -> None: ...
