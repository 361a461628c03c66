# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

import numpy as np

from bridge.c10.tensor_impl import TensorImpl

def import_array(array: np.ndarray[Any, Any], copy: bool | None) -> TensorImpl: ...
def export_array(impl: TensorImpl, caller: str) -> np.ndarray[Any, Any]: ...
