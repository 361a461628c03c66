# SPDX-License-Identifier: Apache-2.0
"""Kernels: our own loops for the CPU, which an operator names in its declaration.

``@operator("Adam", kernel=Few(step_kernels.adam))``: the kernel has the parameters of the
operator's function. It is called instead of it where it applies, on plain tensors only: torch's
tracing, transforms, gradients and other devices see torch functions. Where it returns None, because
of sizes or arguments, the function is called, too.

What a kernel calls is compiled: modules `<topic>_kernels`, whose functions are `recordable`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType

import torch
from torch import Tensor, dtype

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.calls import take_memory
from bridge.caffe2.execution.torch_state import is_observed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = ["FEW", "Few", "address_of", "recordable", "takes_kernels", "with_kernel"]

FEW = 4096
"""The most elements for kernels that win since they are called faster than torch's functions."""


class Few:
    """A kernel of an operator, from a compiled ``kernel(*outputs, *inputs, n, *arguments)``.

    It applies to inputs of `n` elements, at most `FEW`, where there are buffers for the outputs.
    scalars: the inputs of one element, by name. outputs: the most that the kernel writes, None for
    those that are not wanted; 0: all that there are. alike: the inputs and outputs have one shape.
    """

    def __init__(
        self, kernel: Callable[..., Any], scalars: str = "", outputs: int = 0, alike: bool = False
    ) -> None:
        self.run = recordable(kernel)
        self.scalars = frozenset(scalars.split())
        self.most = outputs
        self.alike = alike
        self.names: Sequence[str] = ()  # of the inputs, which `with_kernel` sets

    def __call__(
        self, *inputs: Tensor, out: Any = None, outputs: int = 0, in_place: Any = None, **given: Any
    ) -> Any:
        """Compute, and return the outputs; None: it does not apply."""
        n = inputs[0].numel()
        if out is None or n > FEW:
            return None
        rooms = out if isinstance(out, tuple) else (out,)
        if self.most and len(rooms) > self.most:
            return None
        if self.alike:
            shape = inputs[0].shape
            if any(x.shape != shape for x in (*inputs, *rooms)):
                return None
        for name, x in zip(self.names, inputs, strict=False):
            if x.numel() != (1 if name in self.scalars else n):
                return None
        missing = (None,) * (self.most - len(rooms))
        self.run(*rooms, *missing, *inputs, n, *given.values())
        return out


def with_kernel(
    function: Callable[..., Any], kernel: Callable[..., Any], types: Sequence[Any]
) -> Callable[..., Any]:
    """Return a function that calls `kernel` where it applies, and else `function`.

    types: for each input the element types that the operator takes, as a `Declaration` has them. Of
    several with float32 among them the kernel takes float32 alone.
    """
    if isinstance(kernel, Few):
        kernel.names = function.__code__.co_varnames
    dtypes: list[frozenset[Any] | None] = []
    for i, one in enumerate(types):
        other = isinstance(one, int)  # an input whose type it has; itself: any
        dtypes.append(None if other and one >= i else dtypes[one] if other else _dtypes(one))
    last = dtypes[-1] if dtypes else None

    @functools.wraps(function)
    def call(*inputs: Any, **arguments: Any) -> Any:
        if not torch.compiler.is_compiling():
            kinds = (*dtypes, *(last,) * (len(inputs) - len(dtypes)))
            pairs = zip(inputs, kinds, strict=False)
            fit = all(x is None or kind is None or x.dtype in kind for x, kind in pairs)
            if fit and _are_plain(inputs, arguments.get("out")):
                found = kernel(*inputs, **arguments)
                if found is not None:
                    return found
        return function(*inputs, **arguments)

    return call


def _dtypes(types: Any) -> frozenset[Any] | None:
    """Return the dtypes of torch that a kernel takes of these types; None: any."""
    if types is None:
        return None
    if isinstance(types, list):
        return frozenset().union(*(_dtypes(one) or () for one in types))
    found = frozenset(getattr(torch, one.name) for one in types if hasattr(torch, one.name))
    return frozenset({torch.float32}) if torch.float32 in found else found


def takes_kernels(*tensors: Tensor, dtype: dtype | None = None) -> bool:
    """Return whether kernels may be called on these: row-major float32 on the CPU, and plain.

    That is nobody traces, transforms or casts what is computed, or wants its gradients. So it is
    asked before sizes are compared: an exported module would be bound to the outcome. dtype: the
    type of elements, if it is not float32.
    """
    if torch.compiler.is_compiling():
        return False
    dtype = dtype or torch.float32
    return all(x.dtype is dtype for x in tensors) and _are_plain(tensors, None)


def _are_plain(tensors: Sequence[Tensor | None], out: Any) -> bool:
    with_gradients = torch.is_grad_enabled()
    rooms = () if out is None else out if isinstance(out, tuple) else (out,)
    for x in (*tensors, *rooms):
        if x is not None and (
            (type(x) is not torch.Tensor and type(x) is not torch.nn.Parameter)
            or not x.is_cpu
            or not x.is_contiguous()
            or (with_gradients and x.requires_grad)
            or x.is_neg()
        ):
            return False
    return not is_observed() and not torch._C._is_any_autocast_enabled()


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

    call.kernel = function  # type: ignore[attr-defined]  # what a recording calls again
    return call
