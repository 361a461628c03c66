# SPDX-License-Identifier: Apache-2.0
from typing import Any

from bridge.c10.tensor_impl import TensorImpl

def import_plain_buffer(x: Any) -> TensorImpl | None: ...
