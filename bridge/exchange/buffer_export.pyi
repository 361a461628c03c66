# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from bridge.c10.tensor_impl import TensorImpl

def export_array_interface(exported: TensorImpl) -> dict[str, Any]: ...
def export_cuda_interface(exported: TensorImpl) -> dict[str, Any]: ...
