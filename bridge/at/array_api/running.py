# SPDX-License-Identifier: Apache-2.0
"""How functions of the array API standard are made of torch's: types agreed on, then torch runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from bridge.at.array_api.dtypes import SCALARS, promoted
from bridge.at.tensor import Tensor, torch_runner
from bridge.c10.type_meta import TypeMeta, as_type

__all__ = ["agreed", "all_agreed", "axes_of", "named", "on_memory"]


def on_memory(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of torch tensors one of at.Tensors, which runs on their memory."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return torch_runner.run(function.__name__, function, args, kwargs)

    return call


def named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """Make a function of torch tensors one of at.Tensors, with this name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return on_memory(function)


def all_agreed(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return the tensors in the type that the standard's table promotes their types to.

    torch counts tensors without dimensions as scalars, which the standard does not. Types without a
    row in the table are left to torch.
    """
    types = {tensor.dtype for tensor in tensors}
    if len(types) < 2:
        return list(tensors)
    found: TypeMeta | None = None
    for dtype in types:
        found = as_type(dtype) if found is None else promoted(found, as_type(dtype))
        if found is None:
            return list(tensors)
    assert found is not None
    return [tensor.to(found.torch) for tensor in tensors]


def agreed(x1: Any, x2: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two operands as tensors of one type; one of them may be a scalar, of Python or NumPy.

    Raises TypeError: both are.
    """
    x1, x2 = [
        one.item() if hasattr(one, "__array__") and not isinstance(one, torch.Tensor) else one
        for one in (x1, x2)
    ]
    if isinstance(x1, SCALARS):
        if isinstance(x2, SCALARS):
            raise TypeError(f"One operand is an array; these are {x1!r} and {x2!r}.")
        return _as_tensor(x1, x2), x2
    if isinstance(x2, SCALARS):
        return x1, _as_tensor(x2, x1)
    x1, x2 = all_agreed((x1, x2))
    return x1, x2


def _as_tensor(scalar: complex, other: torch.Tensor) -> torch.Tensor:
    dtype = torch.result_type(other, scalar)
    return torch.asarray(scalar, dtype=dtype, device=other.device)


def axes_of(x: torch.Tensor | Tensor, axis: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return the axes that a reduction removes, none of them negative; None is all of them.

    Raises IndexError: an axis does not exist, or is named twice.
    """
    if axis is None:
        return tuple(range(x.ndim))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    for one in given:
        if not -x.ndim <= one < x.ndim:
            raise IndexError(f"There is no axis {one} in an array of {x.ndim} dimensions.")
    axes = tuple(one % x.ndim for one in given)
    if len(set(axes)) < len(axes):
        raise IndexError(f"The axes {given} name one twice.")
    return axes
