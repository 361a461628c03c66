# SPDX-License-Identifier: Apache-2.0
"""How a function of torch tensors uses a compiled kernel: see the modules `<topic>_kernels`.

    if takes_kernels(x):
        return run_kernel(image_kernels.max_pool, x, out, ...)
    return functional.max_pool2d(x, ...)

A kernel is called on plain tensors only: torch's tracing, transforms, gradients and other devices
see torch functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, dtype

from bridge.caffe2.operators.base.kernel_memory import are_plain

# Elements up to which `takes_few` has a kernel: relu takes 0.7 microseconds for as many, by torch
# 1.6; for 131,072 it takes 14, by torch's wider vectors 13.
_FEW = 4096


def takes_kernels(*tensors: Tensor, dtype: dtype | None = None) -> bool:
    """Return whether kernels may be called on these: row-major float32 on the CPU, and plain.

    That is nobody traces, transforms or casts what is computed, or wants its gradients. So it is
    asked before sizes are compared: an exported module would be bound to the outcome. dtype: the
    type of elements, if it is not float32.
    """
    if torch.compiler.is_compiling():
        return False
    return are_plain(tensors, dtype or torch.float32)


def takes_few(first: Tensor | None, *others: Tensor) -> bool:
    """Return whether kernels may be called on these, and `first` is there and has few elements."""
    return first is not None and takes_kernels(first, *others) and first.numel() <= _FEW


def run_kernel(kernel: Callable[..., Any], x: Tensor, *arguments: Any) -> Any:
    """Return the result of a kernel, whose call is recorded as those of torch functions are.

    The kernel is a compiled function. It finds addresses by `kernel_memory` alone, which checks
    numbers of elements, and returns a tensor that it was given, and has written.
    """
    if torch.overrides.has_torch_function_unary(x):
        return torch.overrides.handle_torch_function(kernel, (x,), x, *arguments)
    return kernel(x, *arguments)
