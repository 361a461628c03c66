# SPDX-License-Identifier: Apache-2.0
from typing import TypeVar

_T = TypeVar("_T")

def immortal(one: _T) -> _T: ...
