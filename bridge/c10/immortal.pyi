# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import TypeVar

_T = TypeVar("_T")

def immortal(one: _T) -> _T: ...
