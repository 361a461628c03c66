# SPDX-License-Identifier: Apache-2.0
"""``torch.nn.Parameter(x)`` of the bridge's tensors: a parameter on their memory.

torch makes a parameter of a foreign tensor only if it records gradients itself, and has no place to
register another way, so ``Parameter.__new__`` is wrapped.
"""

from __future__ import annotations

import functools
from typing import Any

from bridge.wrapper import Wrapper


def register() -> None:
    """Make torch.nn.Parameter take both tensor classes, as `bridge.to_torch` does."""
    import torch

    theirs = torch.nn.Parameter.__new__
    if getattr(theirs, "_takes_bridge", False):
        return

    @functools.wraps(theirs)
    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, Wrapper):
            from bridge.front import to_torch

            data = to_torch(data)
        return theirs(cls, data, requires_grad)

    new._takes_bridge = True  # type: ignore[attr-defined]
    torch.nn.Parameter.__new__ = staticmethod(new)  # type: ignore[method-assign]
