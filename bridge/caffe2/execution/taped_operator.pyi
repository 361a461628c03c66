# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from bridge.caffe2.execution.operator_core import OperatorCore
from bridge.caffe2.execution.tape import Tape

@disjoint_base
class Layout: ...

@disjoint_base
class Operand: ...

@disjoint_base
class BlobTape(Tape): ...

@disjoint_base
class Signature: ...

@disjoint_base
class BoundCore:
    forced: dict[int, int] | None
    across: frozenset[int]
    declaration: Any
    function: Callable[..., Any]
    arguments: dict[str, Any]
    types: tuple[Any, ...]
    in_place: dict[int, int]
    on_host: frozenset[int]
    wants: dict[str, str]
    out_name: str | None
    is_recorded: bool
    reads_values: bool
    sized_by: tuple[int, ...]
    has_strings: bool
    is_filled: bool

@disjoint_base
class TapedOperator(OperatorCore): ...
