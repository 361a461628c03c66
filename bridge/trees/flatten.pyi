# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Iterable
from typing import Any

class Leaf:
    value: Any
    path: str
    keys: tuple[Any, ...]
    def __init__(self, value: Any, path: str, keys: tuple[Any, ...]) -> None: ...

class Flat:
    tree: Any
    leaves: list[Leaf]
    def __init__(self, tree: Any, leaves: list[Leaf]) -> None: ...
    def rebuild(self, values: Iterable[Any]) -> Any: ...

def flatten(tree: Any) -> Flat: ...
