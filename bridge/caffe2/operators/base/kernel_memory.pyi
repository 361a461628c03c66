# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

def are_plain(tensors: tuple[Any, ...], dtype: Any) -> bool: ...
