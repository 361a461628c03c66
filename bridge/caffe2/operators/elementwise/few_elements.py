# SPDX-License-Identifier: Apache-2.0
"""Kernels for operators on a few elements, where the call of a torch function takes longest."""

from __future__ import annotations

from bridge.caffe2.operators.base.cpu_kernels import recordable, takes_kernels
from bridge.caffe2.operators.elementwise import small_kernels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

__all__ = ["KERNELS", "are_few", "relu"]

_MOST = 4096  # elements; for more, torch's wider vectors win


def are_few(out: Tensor | None, *inputs: Tensor) -> bool:
    """Return whether kernels compute on these: few elements, and all of one shape."""
    if out is None:
        return False
    shape = out.shape
    return (
        all(x.shape == shape for x in inputs)
        and takes_kernels(out, *inputs)
        and out.numel() <= _MOST
    )


@recordable
def relu(x: Tensor, out: Tensor) -> Tensor:
    """Set `out` to max(x, 0), and return it."""
    small_kernels.relu(x.data_ptr(), out.data_ptr(), min(x.numel(), out.numel()))
    return out


def _of_two(kernel: Callable[[int, int, int, int], None]) -> Callable[..., Tensor]:
    def compute(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
        n = min(a.numel(), b.numel(), out.numel())
        kernel(a.data_ptr(), b.data_ptr(), out.data_ptr(), n)
        return out

    compute.__name__ = kernel.__name__
    return recordable(compute)


KERNELS = {
    "add": _of_two(small_kernels.add),
    "sub": _of_two(small_kernels.subtract),
    "mul": _of_two(small_kernels.multiply),
}
"""By the name of the torch function: ``(a, b, out)`` sets `out` and returns it."""
