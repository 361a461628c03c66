# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from typing_extensions import disjoint_base

from bridge.caffe2.tensor.tensor import Tensor

@disjoint_base
class Spot:
    def __init__(self, tensor: Tensor) -> None: ...
    def has(self, tensor: Any) -> bool: ...
