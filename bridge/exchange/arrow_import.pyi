# SPDX-License-Identifier: Apache-2.0
from typing import Any

from bridge.c10.tensor_impl import TensorImpl

def import_arrow(x: Any, copy: bool | None = None) -> TensorImpl: ...
def import_pyarrow(x: Any, copy: bool | None) -> TensorImpl | None: ...
