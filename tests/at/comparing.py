# SPDX-License-Identifier: Apache-2.0
"""Tensors side by side with torch and NumPy over one memory, and how two of them are compared."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import bridge
from bridge import at

# Where torch raises one of these, so must we; which one is open.
ERRORS = (RuntimeError, IndexError, ValueError, TypeError)


def pair(
    shape: Sequence[int], dtype: torch.dtype = torch.float32
) -> tuple[at.Tensor, torch.Tensor]:
    """A tensor 0, 1, 2, … of `shape`, and the torch tensor whose memory it shares."""
    theirs = torch.arange(math.prod(shape)).to(dtype).reshape(tuple(shape))
    return bridge.from_dlpack(theirs), theirs


def telling_strides(sizes: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The strides that can be observed: those of dimensions with more than one element."""
    if 0 in list(sizes):
        return []
    return [stride for size, stride in zip(sizes, strides, strict=True) if size > 1]


def expect_like_torch(ours: at.Tensor, theirs: torch.Tensor) -> None:
    """Check that both have the same metadata and values over the same memory."""
    assert isinstance(ours, at.Tensor)
    assert ours.shape == tuple(theirs.shape)
    assert (ours.dim(), ours.numel()) == (theirs.dim(), theirs.numel())
    assert ours.dtype().torch is theirs.dtype
    assert telling_strides(ours.sizes(), ours.strides()) == telling_strides(
        theirs.shape, theirs.stride()
    )
    assert ours.is_contiguous() == theirs.is_contiguous()
    if theirs.numel():
        assert ours.storage_offset() == theirs.storage_offset()
        assert ours.data_ptr() == theirs.data_ptr()
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def expect_result(ours: Any, theirs: torch.Tensor) -> None:
    """Check type, shape and values of a fresh result."""
    assert isinstance(ours, at.Tensor)
    assert ours.dtype().torch is theirs.dtype
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def expect_like_numpy(ours: at.Tensor, theirs: Any) -> None:
    """Check that both have the same shape, strides and values; `theirs` may be a NumPy scalar."""
    theirs = np.asarray(theirs)
    assert isinstance(ours, at.Tensor)
    assert ours.shape == theirs.shape
    assert ours.numpy().dtype == theirs.dtype
    np.testing.assert_array_equal(ours.numpy(), theirs)
    assert ours.tolist() == theirs.tolist()


def address(array: np.ndarray) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]


def read_only(shape: Sequence[int] = (2, 3)) -> tuple[at.Tensor, np.ndarray]:
    """A read-only float32 tensor 0, 1, 2, … and the array it was imported from."""
    array = np.arange(math.prod(shape), dtype=np.float32).reshape(tuple(shape))
    array.flags.writeable = False
    return bridge.from_dlpack(array), array
