# SPDX-License-Identifier: Apache-2.0
"""Creation functions of the array API standard."""

from __future__ import annotations

from typing import Any

import torch

from bridge.at import factories
from bridge.at.array_api.running import on_memory
from bridge.at.tensor import Tensor
from bridge.at.torch_factories import tensor
from bridge.c10.device import as_device
from bridge.c10.type_meta import TypeMeta, as_type
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.protocols import has_door

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like",
    "linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def _default_type(*numbers: Any) -> TypeMeta:
    """Return the default type of arrays of these Python numbers."""
    for kind, name in ((complex, "complex64"), (float, "float32")):
        if any(isinstance(one, kind) for one in numbers):
            return as_type(name)
    return as_type("bool" if all(isinstance(one, bool) for one in numbers) else "int64")


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Return an array of a number, nested sequences of numbers, or anything that has memory.

    Memory is shared unless `copy` is true, or the type or the device differs.

    Raises ValueError: ``copy=False``, and a copy is needed.
    """
    if not has_door(obj):
        if copy is False:
            raise ValueError(f"{type(obj).__name__} has no memory to share: copy=False cannot be.")
        return tensor(_plain(obj), dtype=dtype, device=device)
    found = obj if isinstance(obj, Tensor) else Tensor._wrap(import_tensor(obj, device, copy))
    wanted = found.dtype() if dtype is None else as_type(dtype)
    place = found.device() if device is None else as_device(device)
    if found.dtype() is not wanted or found.device() != place:
        if copy is False:
            raise ValueError(
                f"The array is {found.dtype()} on {found.device()}: copy=False cannot be."
            )
        return found.to(place, wanted)
    return obj.clone() if copy is True and found is obj else found


def _plain(obj: Any) -> Any:
    """Return nested sequences with numbers in place of the arrays in them."""
    if isinstance(obj, (list, tuple)):
        return [_plain(one) for one in obj]
    return obj.tolist() if has_door(obj) and hasattr(obj, "tolist") else obj


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return an array of the memory of `x`, as `bridge.from_dlpack` does."""
    return Tensor._wrap(import_tensor(x, device, copy))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array whose elements are not set."""
    return factories.empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of zeros."""
    return factories.zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of ones."""
    return factories.ones(_sizes(shape), dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of one value; its type is by default that of the value."""
    if dtype is None:
        dtype = fill_value.dtype if has_door(fill_value) else _default_type(fill_value)
    return factories.full(_sizes(shape), fill_value, dtype=dtype, device=device)


def _sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array with the sizes of another whose elements are not set."""
    return factories.empty_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of zeros with the sizes of another."""
    return factories.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of ones with the sizes of another."""
    return factories.ones_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of one value with the sizes, and by default the type, of another."""
    return factories.full_like(x, fill_value, dtype=dtype, device=device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Any = None,
    device: Any = None,
) -> Tensor:
    """Return the numbers from `start` to before `stop`, `step` apart; there may be none."""
    if stop is None:
        start, stop = 0, start
    own = as_type(dtype) if dtype is not None else _default_type(start, stop, step, 1)
    if (step > 0 and stop <= start) or (step < 0 and stop >= start):
        return factories.empty((0,), dtype=own, device=device)
    found: Tensor = _range(start, stop, step, dtype=own, device="cpu" if device is None else device)
    return found


@on_memory
def _range(start: float, stop: float, step: float, *, dtype: Any, device: Any) -> torch.Tensor:
    try:
        return torch.arange(start, stop, step, dtype=dtype, device=device)
    except (NotImplementedError, RuntimeError):  # torch has no range of this type
        return torch.arange(start, stop, step, device=device).to(dtype)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """Return `num` numbers from `start` to `stop`, evenly spaced; without it if not `endpoint`."""
    own = as_type(dtype) if dtype is not None else _default_type(start, stop, 1.0)
    found: Tensor = on_memory(torch.linspace)(
        start,
        stop,
        num if endpoint else num + 1,
        dtype=own,
        device="cpu" if device is None else device,
    )
    return found if endpoint else found[:num]


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return a matrix with ones on the diagonal `k` above the main one."""
    columns = n_rows if n_cols is None else n_cols
    found = zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        found.diagonal(k).fill_(1)
    return found


@on_memory
def meshgrid(*arrays: torch.Tensor, indexing: str = "xy") -> Any:
    """Return the coordinates of a grid: an array for each of the given one-dimensional ones."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}.")
    return tuple(torch.meshgrid(*arrays, indexing=indexing)) if arrays else ()


@on_memory
def tril(x: torch.Tensor, /, *, k: int = 0) -> torch.Tensor:
    """Return the lower triangles of matrices, up to diagonal `k`; zeros elsewhere."""
    return torch.tril(x, k)


@on_memory
def triu(x: torch.Tensor, /, *, k: int = 0) -> torch.Tensor:
    """Return the upper triangles of matrices, from diagonal `k` on; zeros elsewhere."""
    return torch.triu(x, k)
