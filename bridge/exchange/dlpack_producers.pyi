# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from bridge.c10.tensor_impl import TensorImpl

MAX_VERSION: tuple[int, int]

def import_by_dlpack(x: Any, *, readonly: bool = False, on_host: bool = False) -> TensorImpl: ...
