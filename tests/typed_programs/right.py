# SPDX-License-Identifier: Apache-2.0
"""A user's program that type checkers accept; `typed` of test_typing.py says what they infer."""

from typing import Any

import numpy as np
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.typing import DeviceLike, TensorLike, TypeLike


def take(x: TensorLike, T: TypeLike = "float32", D: DeviceLike = "cpu") -> at.Tensor:
    """Take any tensor."""
    return bridge.asarray(x, dtype=T, device=D)


array: np.ndarray[Any, Any] = np.ones((2, 3), np.float32)
for source in (take(array), take(torch.ones(2)), take(b"abc"), take(bytearray(4), c10.uint8)):
    assert source.ndim >= 0
x = bridge.from_dlpack(torch.ones(2, 3))
y: at.Tensor = x.softmax(-1)
y = at.softmax(x, -1)
y = x.sum(dim=0, keepdim=True) + 1
y = at.relu(x).mul_(2.0)
y = x.topk(2).values
values, indices = at.topk(x, 2)
y = indices.to(c10.float32)
y = at.einsum("ij,kj->ik", x, x)
y = x.T
parts: tuple[at.Tensor, ...] = x.split(1)
flag: bool = x.is_floating_point()
t: torch.Tensor = bridge.to_torch(x)
n: np.ndarray[Any, Any] = bridge.convert(x, "numpy")
c: caffe2.Tensor = bridge.convert(x, "caffe2")
same: bool = bridge.shares_memory(t, n)
t = torch.softmax(bridge.to_torch(x), -1)
