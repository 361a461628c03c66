# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

MOST_SIZES: int

@disjoint_base
class Slot:
    def __init__(self, index: int) -> None: ...
    @property
    def index(self) -> int: ...

@disjoint_base
class Memory: ...

def is_kernel(function: Callable[..., Any]) -> bool: ...

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
    def __init__(self, calls: list[Call], slots: int, results: tuple[int, ...] | None) -> None: ...
    @property
    def results(self) -> tuple[int, ...] | None: ...
