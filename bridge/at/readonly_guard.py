# SPDX-License-Identifier: Apache-2.0
"""Keep torch from writing read-only memory that was exported to it for reading.

The schema of an operation says what it writes. That also finds writes that the name of a function
does not show, such as ``relu(x, inplace=True)``. A few operations write what their schemas do not
say.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from bridge.c10.errors import EnforceNotMet
from bridge.exchange.torch_api import is_torch_tensor

# What torch keeps as a bit of a tensor until an operation needs the values.
_LAZY = ("Conjugate", "Negative", "ZeroTensor")
# Running statistics, which normalizations write, in training mode if they have one.
_STATISTICS = ("running_mean", "running_var")
_UNDECLARED = dict.fromkeys(
    (
        "aten::_batch_norm_impl_index",
        "aten::_native_batch_norm_legit",
        "aten::batch_norm",
        "aten::batch_norm_gather_stats",
        "aten::batch_norm_gather_stats_with_counts",
        "aten::batch_norm_update_stats",
        "aten::cudnn_batch_norm",
        "aten::instance_norm",
        "aten::miopen_batch_norm",
        "aten::native_batch_norm",
    ),
    _STATISTICS,
)
_TRAINING = ("training", "train", "use_input_stats")
# operation -> positions and names of the arguments that it writes, and of what says "training" to
# the undeclared ones
_found: dict[Any, tuple[list[tuple[int, str, bool]], tuple[int, str] | None]] = {}


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


def computed(func: Any, args: Any, kwargs: Any) -> Any:
    """Return ``func(*args, **kwargs)``, called by a ``__torch_dispatch__``, as without one.

    torch disables the conjugation that is pending in a tensor while such a handler runs, also for
    what the operation computes inside: ``torch.linalg.pinv`` of a complex tensor is then another
    matrix (torch 2.13).
    """
    from torch._C import DispatchKey, _SetExcludeDispatchKeyGuard

    with ExitStack() as stack:
        for name in _LAZY:
            stack.enter_context(_SetExcludeDispatchKeyGuard(getattr(DispatchKey, name), False))
        return func(*args, **kwargs)


def written(func: Any, args: Any, kwargs: Any) -> Iterator[Any]:
    """Yield the arguments that ``func(*args, **kwargs)`` writes; of lists, their items.

    `func`: an operation as ``__torch_dispatch__`` gets it.
    """
    found = _found.get(func)
    if found is None:
        found = _found[func] = _arguments(func)
    writes, training = found
    for position, name, undeclared in writes:
        if undeclared and training is not None and not _given(*training, args, kwargs):
            continue
        value = _given(position, name, args, kwargs)
        if isinstance(value, (list, tuple)):
            yield from value
        else:
            yield value


def _given(position: int, name: str, args: Any, kwargs: Any) -> Any:
    return args[position] if position < len(args) else kwargs.get(name)


def _arguments(func: Any) -> tuple[list[tuple[int, str, bool]], tuple[int, str] | None]:
    schema = getattr(func, "_schema", None)
    if schema is None or schema.name == "aten::record_stream":
        # a higher-order operation, whose inner ones are seen by themselves; what frees memory later
        return [], None
    undeclared = _UNDECLARED.get(schema.name, ())
    writes, training = [], None
    for position, argument in enumerate(schema.arguments):
        info = argument.alias_info
        declared = info is not None and info.is_write
        if declared or argument.name in undeclared:
            writes.append((position, argument.name, not declared))
        elif argument.name in _TRAINING:
            training = (position, argument.name)
    return writes, training
