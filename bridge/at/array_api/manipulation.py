# SPDX-License-Identifier: Apache-2.0
"""Manipulation functions of the array API standard: views where sizes and strides allow it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from bridge.at.array_api.running import all_agreed, axes_of, on_memory
from bridge.at.tensor import Tensor
from bridge.c10.errors import EnforceNotMet

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip",
    "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile",
    "unstack",
]  # fmt: skip


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Return a view of the array that is repeated to these sizes."""
    return x.expand(shape)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes that these broadcast to. Raises ValueError: they do not."""
    try:
        return tuple(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise ValueError(f"The sizes {shapes} do not broadcast: {error}") from error


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Return views of the arrays with the sizes that they broadcast to."""
    shape = broadcast_shapes(*[one.shape for one in arrays])
    return tuple([one.expand(shape) for one in arrays])


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """Return a view with a dimension of size one at `axis`, or at each of several.

    Raises IndexError: there is no such place. ValueError: one is named twice.
    """
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    ndim = x.ndim + len(given)
    for one in given:
        if not -ndim <= one < ndim:
            raise IndexError(f"There is no axis {one} in a result of {ndim} dimensions.")
    places = sorted(one % ndim for one in given)
    if len(set(places)) < len(places):
        raise ValueError(f"The axes {given} name one twice.")
    for place in places:
        x = x.unsqueeze(place)
    return x if given else x.alias()


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return a view without the dimensions `axis`, which are of size one.

    Raises ValueError: they are not. IndexError: there is no such axis.
    """
    axes = axes_of(x, axis)
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"Axis {one} is of size {x.shape[one]}, and not 1.")
    return x.squeeze(axes)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Return a view with the dimensions in another order."""
    return x.permute(tuple(axes))


def moveaxis(
    x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Tensor:
    """Return a view with some dimensions moved; the others stay in order.

    Raises ValueError: their numbers differ. IndexError: there is no such axis.
    """
    sources, places = axes_of(x, source), axes_of(x, destination)
    if len(sources) != len(places):
        raise ValueError(f"{len(sources)} axes cannot move to {len(places)} places.")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return x.permute(order)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return the elements with other sizes: a view if the strides allow it, else a copy.

    Raises ValueError: the number of elements differs, or ``copy=False`` and a copy is needed.
    """
    if copy is True:
        return x.clone().reshape(tuple(shape))
    if copy is None:
        return x.reshape(tuple(shape))
    try:
        return x.view(tuple(shape))
    except EnforceNotMet as error:
        raise ValueError(str(error)) from error


@on_memory
def concat(arrays: Sequence[torch.Tensor], /, *, axis: int | None = 0) -> torch.Tensor:
    """Return the arrays joined along `axis`; None joins them flat."""
    tensors = all_agreed(arrays)
    if axis is None:
        return torch.cat([one.flatten() for one in tensors])
    return torch.cat(tensors, axis)


@on_memory
def stack(arrays: Sequence[torch.Tensor], /, *, axis: int = 0) -> torch.Tensor:
    """Return the arrays joined along a new dimension at `axis`."""
    return torch.stack(all_agreed(arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return views of the array at each index of `axis`, without that dimension."""
    (axis,) = axes_of(x, axis)
    return tuple([x.select(axis, index) for index in range(x.shape[axis])])


@on_memory
def flip(x: torch.Tensor, /, *, axis: int | tuple[int, ...] | None = None) -> torch.Tensor:
    """Return the elements in reverse order along `axis`; None is all of them."""
    return torch.flip(x, axes_of(x, axis))


@on_memory
def roll(
    x: torch.Tensor, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None
) -> torch.Tensor:
    """Return the elements moved on by `shift` along `axis`, those at the end to the beginning."""
    if axis is None:
        return torch.roll(x, shift)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return torch.roll(x, shifts, axes)


@on_memory
def repeat(
    x: torch.Tensor, repeats: int | torch.Tensor, /, *, axis: int | None = None
) -> torch.Tensor:
    """Return each element `repeats` times, along `axis`; None repeats them flat."""
    if isinstance(repeats, torch.Tensor):
        repeats = repeats.to(torch.int64)
    if axis is None:
        return torch.repeat_interleave(x.flatten(), repeats)
    return torch.repeat_interleave(x, repeats, dim=axis)


@on_memory
def tile(x: torch.Tensor, repetitions: tuple[int, ...], /) -> torch.Tensor:
    """Return the array as often as `repetitions` says, along each dimension."""
    return torch.tile(x, tuple(repetitions))
