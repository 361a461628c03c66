# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
import threading
from typing import Any

def convert_one(
    x: Any, name: str, copy: bool | None, writable: bool = False, readonly: bool = False
) -> Any: ...

class _Running(threading.local): ...
