# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

@disjoint_base
class Slot:
    index: int
    def __init__(self, index: int) -> None: ...

@disjoint_base
class Memory: ...

def take_memory(kernel: Callable[..., Any]) -> None: ...

@disjoint_base
class Call:
    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        result: int | tuple[int | None, ...] | None,
        is_view: bool,
        roots: frozenset[int] | None,
        last: tuple[int, ...] | None,
    ) -> None: ...

@disjoint_base
class Tape:
    results: tuple[int, ...] | None
    def __init__(self, calls: list[Call], slots: int, results: tuple[int, ...] | None) -> None: ...
