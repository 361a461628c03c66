# SPDX-License-Identifier: Apache-2.0
"""Keep torch from writing read-only memory that was exported to it for reading.

The schema of an ATen operation specifies which arguments it writes. So this also detects writes
that the name of a function does not show, such as ``relu(x, inplace=True)``.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet
from bridge.exchange.torch_api import is_torch_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["guard", "read_only"]

# Running statistics, which these operations write although their schemas do not specify it.
_STATISTICS = ("running_mean", "running_var")
_UNDECLARED_WRITES = dict.fromkeys(
    (
        "aten::_batch_norm_impl_index",
        "aten::_native_batch_norm_legit",
        "aten::batch_norm",
        "aten::cudnn_batch_norm",
        "aten::instance_norm",
        "aten::miopen_batch_norm",
        "aten::native_batch_norm",
    ),
    _STATISTICS,
)


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
                undeclared = _UNDECLARED_WRITES.get(func._schema.name, ())
                if undeclared and not _is_training(func._schema.arguments, args, kwargs):
                    undeclared = ()
                for i, argument in enumerate(func._schema.arguments):
                    info = argument.alias_info
                    if argument.name in undeclared or (info is not None and info.is_write):
                        given = args[i] if i < len(args) else kwargs.get(argument.name)
                        for one in given if isinstance(given, (list, tuple)) else (given,):
                            self._check(one)
                return func(*args, **kwargs)

            def _check(self, given: Any) -> None:
                if is_torch_tensor(given) and given.numel():
                    address = given.untyped_storage().data_ptr()
                    if any(first <= address < end for first, end in self.ranges):
                        raise read_only()

        _guard_class = Guard
    return _guard_class(ranges)


def _is_training(arguments: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a normalization is in training mode: only then it writes statistics."""
    for i, argument in enumerate(arguments):
        if argument.name in ("training", "train", "use_input_stats"):
            return bool(args[i] if i < len(args) else kwargs.get(argument.name))
    return True
