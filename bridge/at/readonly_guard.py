# SPDX-License-Identifier: Apache-2.0
"""Keep torch from writing read-only memory that was exported to it for reading.

`bridge.exchange.torch_writes` says which arguments an operation writes.
"""

from __future__ import annotations

from typing import Any

from bridge.c10.errors import EnforceNotMet
from bridge.exchange.torch_api import is_torch_tensor
from bridge.exchange.torch_writes import computed, written


def read_only() -> EnforceNotMet:
    """Return the error of an operation that would write read-only memory."""
    return EnforceNotMet(
        "The memory is read-only. Write to a copy: clone().", "Tensor", condition="!readonly"
    )


_guard_class: Any = None


def guard(ranges: list[tuple[int, int]]) -> Any:
    """Return a torch mode that raises EnforceNotMet when an operation would write one of `ranges`.

    `ranges` are pairs of addresses: the first byte, and after the last.
    """
    global _guard_class
    if _guard_class is None:
        from torch.utils._python_dispatch import TorchDispatchMode

        class Guard(TorchDispatchMode):  # type: ignore[no-untyped-call]
            def __init__(self, ranges: list[tuple[int, int]]) -> None:
                super().__init__()  # type: ignore[no-untyped-call]
                self.ranges = ranges

            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                kwargs = kwargs or {}
                for given in written(func, args, kwargs):
                    self._check(given)
                return computed(func, args, kwargs)

            def _check(self, given: Any) -> None:
                if is_torch_tensor(given) and given.numel():
                    address = given.untyped_storage().data_ptr()
                    if any(first <= address < end for first, end in self.ranges):
                        raise read_only()

        _guard_class = Guard
    return _guard_class(ranges)
