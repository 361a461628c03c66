# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def shuffled(size: int) -> Tensor: ...
