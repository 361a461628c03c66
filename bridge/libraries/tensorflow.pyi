# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from bridge.c10.tensor_impl import TensorImpl

def import_(x: Any, copy: bool | None) -> TensorImpl | None: ...
def export(x: Any, copy: bool | None) -> Any: ...
