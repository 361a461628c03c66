# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from bridge.caffe2.tensor.tensor import Tensor

def copy_array(tensor: Tensor, array: Any) -> None: ...
def adopt(tensor: Tensor, fresh: Tensor) -> None: ...
