# SPDX-License-Identifier: Apache-2.0
"""Inside ``torch.compile(fullgraph=True)``: what `to_torch`, `from_dlpack`, `asarray` become.

Compiled functions cannot be traced; torch.compile takes these, which do the same with torch's
tensors, in their place. In a graph, `from_dlpack(t)` is a torch.Tensor over the memory of `t`, of
the class `TracedTensor`, which has at.Tensor's `to_torch()`.
"""

from __future__ import annotations

import torch

from bridge.front import asarray, from_dlpack, to_torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["TracedTensor", "register"]


class TracedTensor(torch.Tensor):
    """What `from_dlpack` of a torch tensor is in a graph: the tensor, with `to_torch`."""

    def to_torch(self, *, copy: bool | None = None, writable: bool = False) -> torch.Tensor:
        """Return a plain torch.Tensor of the same memory; a copy under ``copy=True``."""
        return _plain(self, copy)


def _plain(x: torch.Tensor, copy: bool | None) -> torch.Tensor:
    if isinstance(x, TracedTensor):
        with torch._C.DisableTorchFunctionSubclass():
            return x.clone() if copy is True else x.view_as(x)
    return x.clone() if copy is True else x


def _call(function: Callable[..., Any], x: Any, **keywords: Any) -> Any:
    return function(x, **keywords)


# `_call` outside of the graph; `register` sets it, since that imports torch._dynamo.
_outside: Callable[..., Any] = _call


def _to_torch(
    x: Any, *, copy: bool | None = None, writable: bool = False, readonly: bool = False
) -> Any:
    if isinstance(x, torch.Tensor):
        return _plain(x, copy)
    return _outside(to_torch, x, copy=copy, writable=writable, readonly=readonly)


def _from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    if not isinstance(x, torch.Tensor):
        return _outside(from_dlpack, x, device=device, copy=copy)
    if x.requires_grad:
        raise BufferError(
            "The tensor requires grad, and autograd would not see what the bridge does to it. "
            "Use tensor.detach()."
        )
    shared = x.clone() if copy is True else x.detach()
    if device is not None:
        shared = shared.to(str(device))
    return shared.as_subclass(TracedTensor)


def _asarray(x: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    if not isinstance(x, torch.Tensor) or (
        dtype is not None and not isinstance(dtype, torch.dtype)
    ):
        return _outside(asarray, x, dtype=dtype, device=device, copy=copy)
    shared = _from_dlpack(x, device=device, copy=copy)
    return shared if dtype is None else shared.to(dtype)


# Modules that torch.compile runs and does not trace: read-only tensors, which refuse to be written.
_SKIPPED = (
    "bridge.readonly_torch",
    "bridge.exchange.torch_writes",
    "bridge.at.readonly_guard",
    "bridge.c10.errors",
)


def register() -> None:
    """Register the functions above with torch.compile, in place of the compiled ones."""
    global _outside
    rules: Any = torch._dynamo.trace_rules
    for name in _SKIPPED:
        rules.add(name)
    _outside = torch.compiler.disable(  # type: ignore[no-untyped-call]
        _call, reason="the bridge's functions are traced for torch's tensors only"
    )
    pairs: list[tuple[Any, Any]] = [
        (to_torch, _to_torch),
        (from_dlpack, _from_dlpack),
        (asarray, _asarray),
    ]
    for compiled, traced in pairs:
        # compiled functions have no signature that could be compared
        torch.compiler.substitute_in_graph(compiled, skip_signature_check=True)(traced)
