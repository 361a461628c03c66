# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from typing_extensions import disjoint_base

from bridge.caffe2.execution.taped_operator import TapedOperator

@disjoint_base
class FunctionCore(TapedOperator):
    def RunOnDevice(self) -> None: ...
    def _put_tensor(self, o: int, tensor: Any) -> None: ...
    def _checked_results(self, returned: Any) -> list[Any]: ...
