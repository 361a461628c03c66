# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

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
    call: str, source: object, target: str, function: Callable[..., T], *args: Any, **kwargs: Any
) -> T: ...
def copying(nbytes: int, reason: str) -> int: ...
