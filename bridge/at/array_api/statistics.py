# SPDX-License-Identifier: Apache-2.0
"""Statistical functions of the array API standard, and its utilities: reductions along axes."""

from __future__ import annotations

import torch

from bridge.annotation import Any
from bridge.at.array_api.running import axes_of, named, on_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Axis: TypeAlias = int | tuple[int, ...] | None

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean",
    "min", "prod", "std", "sum", "var",
]  # fmt: skip


def _axes(x: torch.Tensor, axis: Axis) -> tuple[int, ...]:
    """Return the axes to reduce. One element without dimensions may be reduced along axis 0."""
    return () if x.ndim == 0 and axis in (0, -1) else axes_of(x, axis)


def _one_axis(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """Return `x` with all of `axes` as one, the last."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    sizes = [x.shape[axis] for axis in kept]
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return x.permute(*kept, *axes).reshape(*sizes, count)


def _with_axes(found: torch.Tensor, axes: tuple[int, ...], keepdims: bool) -> torch.Tensor:
    """Return a result with sizes of one in place of the axes that were reduced, if so asked."""
    if keepdims:
        for axis in sorted(axes):
            found = found.unsqueeze(axis)
    return found


def _summed_type(x: torch.Tensor, dtype: Any) -> Any:
    """Return the type of sums: of small integers int64, where it is not given."""
    if dtype is None and x.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        return torch.int64
    return x.dtype if dtype is None else dtype


@on_memory
def sum(
    x: torch.Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False
) -> torch.Tensor:
    """Return the sums along `axis`; integers are summed as int64."""
    axes, own = _axes(x, axis), _summed_type(x, dtype)
    if not axes:
        return x.to(own, copy=True)
    return torch.sum(x, axes, dtype=own, keepdim=keepdims)


@on_memory
def prod(
    x: torch.Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False
) -> torch.Tensor:
    """Return the products along `axis`; integers are multiplied as int64."""
    axes, own = _axes(x, axis), _summed_type(x, dtype)
    if not axes:
        return x.to(own, copy=True)
    return _with_axes(torch.prod(_one_axis(x, axes), -1, dtype=own), axes, keepdims)


def _reduction(name: str, reduce: Callable[..., torch.Tensor], what: str) -> Any:
    def function(x: torch.Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> torch.Tensor:
        axes = _axes(x, axis)
        return reduce(x, axes, keepdim=keepdims) if axes else x.clone()

    return named(function, name, f"Return {what} along `axis`.")


max = _reduction("max", torch.amax, "the greatest elements")
min = _reduction("min", torch.amin, "the least elements")
mean = _reduction("mean", torch.mean, "the means")


def _spread(name: str, reduce: Callable[..., torch.Tensor], doc: str) -> Any:
    def function(
        x: torch.Tensor, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False
    ) -> torch.Tensor:
        axes = _axes(x, axis)
        if not axes:
            return reduce(x.unsqueeze(-1), -1, correction=correction)
        return reduce(x, axes, correction=correction, keepdim=keepdims)

    return named(function, name, doc)


var = _spread(
    "var",
    torch.var,
    "Return the variances along `axis`: sums of squares over their number less `correction`.",
)
std = _spread(
    "std", torch.std, "Return the standard deviations along `axis`, the roots of the variances."
)


def _truth(name: str, reduce: Callable[..., torch.Tensor], what: str) -> Any:
    def function(x: torch.Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> torch.Tensor:
        axes = _axes(x, axis)
        found = _with_axes(reduce(_one_axis(x, axes), -1), axes, keepdims) if axes else x
        return found.to(torch.bool)

    return named(function, name, f"Return whether {what} along `axis`.")


all = _truth("all", torch.all, "all elements are true")
any = _truth("any", torch.any, "any element is true")


@on_memory
def count_nonzero(x: torch.Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> torch.Tensor:
    """Return how many elements along `axis` are not zero."""
    axes = _axes(x, axis)
    truth = x != 0
    return torch.sum(truth, axes, keepdim=keepdims) if axes else truth.to(torch.int64)


def _running(name: str, run: Callable[..., torch.Tensor], first: int, what: str) -> Any:
    def function(
        x: torch.Tensor,
        /,
        *,
        axis: int | None = None,
        dtype: Any = None,
        include_initial: bool = False,
    ) -> torch.Tensor:
        if x.ndim == 0:
            raise ValueError("There is nothing to accumulate along in an array without dimensions.")
        if axis is None:
            if x.ndim > 1:
                raise ValueError(f"axis= is needed, since the array has {x.ndim} dimensions.")
            axis = 0
        (axis,) = axes_of(x, axis)
        own = _summed_type(x, dtype)
        found = run(x, axis, dtype=own)
        if not include_initial:
            return found
        sizes = list(x.shape)
        sizes[axis] = 1
        return torch.cat((torch.full(sizes, first, dtype=own, device=x.device), found), axis)

    doc = f"""Return the {what} of the elements up to each along `axis`.

    From {first} on, if `include_initial`.

    Raises ValueError: no `axis`, and the array is not one-dimensional.
    """
    return named(function, name, doc)


cumulative_sum = _running("cumulative_sum", torch.cumsum, 0, "sums")
cumulative_prod = _running("cumulative_prod", torch.cumprod, 1, "products")


@on_memory
def diff(
    x: torch.Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: torch.Tensor | None = None,
    append: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the differences of neighbours along `axis`, `n` times over."""
    return torch.diff(x, dim=axis, n=n, prepend=prepend, append=append)
