# SPDX-License-Identifier: Apache-2.0
"""Kernels for operators on a few elements, where the call of a torch function takes longest."""

from __future__ import annotations

import math

from torch import Tensor

from bridge.caffe2.operators.base.cpu_kernels import recordable, takes_few, takes_kernels
from bridge.caffe2.operators.elementwise import small_kernels

_MOST_PER_CHANNEL = 1 << 16

relu = recordable(small_kernels.relu)
tanh = recordable(small_kernels.tanh)
join = recordable(small_kernels.join)

KERNELS = {
    "add": recordable(small_kernels.add),
    "sub": recordable(small_kernels.subtract),
    "mul": recordable(small_kernels.multiply),
}
"""By the name of the torch function: ``(a, b, out, numel)`` sets `out` and returns it."""

KERNELS_PER_CHANNEL = {
    "add": recordable(small_kernels.add_per_channel),
    "mul": recordable(small_kernels.multiply_per_channel),
}
"""Likewise ``(a, b, out, *planes)``, where `b` has one element per channel of `a`."""


def are_few(out: Tensor | None, *inputs: Tensor) -> bool:
    """Return whether kernels compute on these: few elements, and all of one shape."""
    if out is None:
        return False
    shape = out.shape
    return all(x.shape == shape for x in inputs) and takes_few(out, *inputs)


def planes_of(out: Tensor | None, x: Tensor, b: Tensor) -> tuple[int, int, int] | None:
    """Return the numbers of images, channels and elements of a plane, if `b` has one per channel.

    `b` broadcasts with `x` as in NumPy. None: it does not, or no kernel computes on these.
    """
    if out is None or out.shape != x.shape or b.dim() > x.dim() or b.numel() < 2:
        return None
    before = x.dim() - b.dim()
    channels = [before + i for i, size in enumerate(b.shape) if size != 1]
    if len(channels) != 1 or x.shape[channels[0]] != b.numel() or not takes_kernels(out, x, b):
        return None
    at = channels[0]
    planes = math.prod(x.shape[:at]), x.shape[at], math.prod(x.shape[at + 1 :])
    return planes if planes[2] >= 16 and out.numel() <= _MOST_PER_CHANNEL else None
