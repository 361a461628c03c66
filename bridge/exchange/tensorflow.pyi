# SPDX-License-Identifier: Apache-2.0
from typing import Any

from bridge.c10.tensor_impl import TensorImpl

def bring(x: Any, copy: bool | None) -> TensorImpl | None: ...
def give(x: Any, copy: bool | None) -> Any: ...
