# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

ASKED: str
PRODUCER: str

class Label(str): ...

def listen(
    outermost: Callable[[], bool],
    watched: Callable[..., Any],
    shared: Callable[[str, object, str, int], None],
    copying: Callable[[int, str], None],
) -> None: ...
def count(by: int) -> None: ...
def outermost() -> bool: ...
def watch(
    call: str, source: object, target: str, function: Callable[..., _T], *args: Any, **kwargs: Any
) -> _T: ...
def copying(nbytes: int, reason: str) -> int: ...
