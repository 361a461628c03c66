# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from collections.abc import Callable
from typing import Any

def convert_tree(
    tree: Any,
    name: str,
    call: str,
    target: str,
    copy: bool | None,
    writable: bool,
    readonly: bool,
    export: Callable[[Any, bool | None], Any] | None = None,
) -> Any: ...
