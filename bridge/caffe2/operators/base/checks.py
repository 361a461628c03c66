# SPDX-License-Identifier: Apache-2.0
"""Checks of inputs and arguments, for the functions of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_float
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.base.cpu_kernels import run_kernel

# Element types that operators accept, as in Caffe2's TensorTypes<...>.
FLOAT = (c10.float32,)
FLOATS = (c10.float32, c10.float64)
INT32 = (c10.int32,)
INT64 = (c10.int64,)
INTS = (c10.int32, c10.int64)
BOOL = (c10.bool,)
NUMBERS = (c10.int32, c10.int64, c10.float32, c10.float64)
NUMBERS_AND_BOOL = (*NUMBERS, c10.bool)

LARGEST = 3.4028234663852886e38
"""The largest float32, Caffe2's default for limits."""


def require(condition: bool, requirement: str, *values: Any) -> None:
    """Raise EnforceNotMet unless `condition` holds.

    `requirement` is a sentence, or a clause without a period: "The operator requires that
    <requirement>; got <values>." Of a tensor in `values` the sizes are shown.
    """
    if not condition:
        if requirement.endswith("."):
            raise EnforceNotMet(requirement)
        shown = [list(one.shape) if hasattr(one, "shape") else one for one in values]
        got = f"; got {', '.join(map(str, shown))}" if shown else ""
        raise EnforceNotMet(f"The operator requires that {requirement}{got}.")


def has_values(*tensors: Tensor) -> bool:
    """Return whether the elements of tensors can be read.

    They cannot while torch traces an operator, or infers sizes on its meta device: checks of
    elements are left out then, except those of `assert_traced`.
    """
    return not torch.compiler.is_compiling() and all(
        type(one).__name__ in ("Tensor", "Parameter") and not one.is_meta for one in tensors
    )


def require_all(holds: Tensor, requirement: str, *values: Tensor) -> None:
    """Raise EnforceNotMet unless all elements of `holds`, if known, are true.

    The check is recorded as a call is. Of `values` the elements are shown; for the others see
    `require`.
    """
    if has_values(holds):
        run_kernel(_checked, holds, requirement, *values)
    else:
        assert_traced(holds, requirement)


def assert_traced(
    x: Tensor, requirement: str, holds: Callable[[Tensor], Tensor] = torch.Tensor.all
) -> None:
    """Make the code of a compiled net fail unless all elements of ``holds(x)`` are true.

    The operators then run one by one, and raise the error. torch.compile and torch.export of
    modules leave the check out. The code may compute all else before it.
    """
    if type(x).__name__ == "FakeTensor" and not torch.compiler.is_compiling():
        torch._assert_async(holds(x).all(), requirement)


def _checked(holds: Tensor, requirement: str, *values: Tensor) -> Tensor:
    if not bool(holds.all()):
        require(False, requirement, *(one.tolist() for one in values))
    return holds


def require_range(what: str, values: Tensor, end: int, start: int = 0) -> None:
    """Raise EnforceNotMet unless all integers `values`, if known, are in [`start`, `end`)."""
    inside = (values >= start) & (values < end)
    require_all(inside, f"{what} are from {start} to below {end}", values.reshape(-1))


def shaped_like(x: Tensor, like: Tensor) -> Tensor:
    """Return `x` in the shape of `like`. Raises EnforceNotMet: the numbers of elements differ."""
    if x.shape == like.shape:
        return x
    require(x.numel() == like.numel(), "the inputs have the same shape", like, x)
    return x.view(like.shape)


def gathered(what: str, rows: Tensor, index: Tensor) -> Tensor:
    """Return the element of each row (N, D) at `index` (N, 1), which is from 0 to below D.

    On the CPU torch checks that itself, and the indices are read only to say which are wrong; so
    the call can be recorded. Raises EnforceNotMet: as `require_range`.
    """
    if rows.is_cuda:
        require_range(what, index, rows.shape[1])
    try:
        return rows.gather(1, index)
    except (IndexError, RuntimeError):
        require_range(what, index, rows.shape[1])
        raise


def broadcast_sizes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes that both broadcast to, as in NumPy. Raises EnforceNotMet: they do not.

    The first call of torch's own function imports 500 modules, for sizes that are not known.
    """
    rank = max(len(a), len(b))
    sizes = []
    for x, y in zip((*(1,) * (rank - len(a)), *a), (*(1,) * (rank - len(b)), *b), strict=True):
        if x != y and x != 1 and y != 1:
            raise EnforceNotMet(f"Sizes {list(a)} and {list(b)} do not broadcast.")
        sizes.append(y if x == 1 else x)
    return tuple(sizes)


def axis_from_front(axis: int, ndim: int) -> int:
    """Return `axis` counted from the front; a negative one counts from the end.

    Raises EnforceNotMet: `axis` is out of range for `ndim` dimensions.
    """
    if not -ndim <= axis < ndim:
        raise EnforceNotMet(
            f"Axis {axis} is out of range for {ndim} dimensions.",
            condition="-dim() <= axis < dim()",
        )
    return axis + ndim if axis < 0 else axis


def image_order(order: str) -> str:
    """Return the argument `order` in upper case: NCHW or NHWC.

    Raises EnforceNotMet: it is neither.
    """
    order = order.upper()
    require(order in ("NCHW", "NHWC"), "order is NCHW or NHWC", order)
    return order


def single(value: float) -> float:
    """Return `value` rounded to float32, the type of Caffe2's arguments."""
    return c_float(value).value
