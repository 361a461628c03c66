# SPDX-License-Identifier: Apache-2.0
"""How a function of torch tensors uses a compiled kernel: see the modules `<topic>_kernels`.

    if takes_kernels(x):
        return max_pool(x, out, ...)    # decorated with `recordable`
    return functional.max_pool2d(x, ...)

A kernel is called on plain tensors only: torch's tracing, transforms, gradients and other devices
see torch functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType

import torch
from torch import Tensor, dtype

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.tape import take_memory
from bridge.exchange.torch_settings import is_observed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FEW = 4096  # elements up to which a kernel is faster; for more, torch's wider vectors win


def takes_kernels(*tensors: Tensor, dtype: dtype | None = None) -> bool:
    """Return whether kernels may be called on these: row-major float32 on the CPU, and plain.

    That is nobody traces, transforms or casts what is computed, or wants its gradients. So it is
    asked before sizes are compared: an exported module would be bound to the outcome. dtype: the
    type of elements, if it is not float32.
    """
    if torch.compiler.is_compiling():
        return False
    with_gradients = torch.is_grad_enabled()
    dtype = dtype or torch.float32
    for x in tensors:
        if (
            (type(x) is not torch.Tensor and type(x) is not torch.nn.Parameter)
            or x.dtype is not dtype
            or not x.is_cpu
            or not x.is_contiguous()
            or (with_gradients and x.requires_grad)
            or x.is_neg()
        ):
            return False
    return not is_observed() and not torch._C._is_any_autocast_enabled()


def takes_few(first: Tensor | None, *others: Tensor) -> bool:
    """Return whether kernels may be called on these, and `first` is there and has few elements."""
    return first is not None and takes_kernels(first, *others) and first.numel() <= _FEW


def address_of(x: Tensor, numel: int) -> int:
    """Return the address of the elements of `x`, for a kernel that accesses `numel` of them.

    Raises EnforceNotMet: `x` has another number of elements, since another thread gave the blob
    other sizes while the operator runs.
    """
    if x.numel() != numel:
        raise EnforceNotMet(
            f"A tensor of sizes {list(x.shape)} was to have {numel} elements: another thread "
            "changed a blob of the operator while it ran."
        )
    return x.data_ptr()


def recordable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose calls are recorded as those of torch functions are.

    Its first argument is a tensor. It returns a tensor that it was given, and has written. A
    compiled function finds addresses by `kernel_memory` alone.
    """
    if not isinstance(function, FunctionType):
        take_memory(function)

    @functools.wraps(function)
    def call(x: Tensor, *arguments: Any) -> Any:
        if torch.overrides.has_torch_function_unary(x):
            return torch.overrides.handle_torch_function(call, (x,), x, *arguments)
        return function(x, *arguments)

    call.kernel = function  # type: ignore[attr-defined]  # which a recording calls again
    return call
