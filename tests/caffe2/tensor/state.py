# SPDX-License-Identifier: Apache-2.0
"""Everything that can be seen of a `caffe2.Tensor`, to compare before and after."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bridge import c10, caffe2

Refusal = type[BaseException] | tuple[type[BaseException], ...]


def state_of(tensor: caffe2.Tensor) -> dict[str, Any]:
    """Metadata, identity of impl and buffer, and a copy of the elements of a CPU tensor."""
    if not tensor.defined():
        return {"defined": False}
    dtype, storage = tensor.dtype(), tensor.storage()
    state: dict[str, Any] = {
        "impl": id(tensor.unsafeGetTensorImpl()),
        "sizes": tuple(tensor.sizes()),
        "strides": tuple(tensor.strides()),
        "numel": tensor.numel(),
        "dtype": dtype.name if dtype else None,
        "capacity": tensor.capacity_nbytes(),
        "use_count": storage.use_count(),
        "address": storage.data_ptr(),
        "storage_initialized": tensor.storage_initialized(),
        "dtype_initialized": tensor.dtype_initialized(),
        "contiguous": tensor.is_contiguous(),
        "device": str(tensor.GetDevice()),
    }
    if tensor.dtype_initialized() and tensor.storage_initialized():
        state["elements"] = elements_of(tensor)
    return state


def elements_of(tensor: caffe2.Tensor) -> bytes | list[Any] | str:
    """The elements, or why they cannot be read: a sharer may have left no room for them."""
    try:
        view = tensor.data()
    except c10.EnforceNotMet as error:
        return str(error)
    assert len(view) == tensor.numel()
    return view.tobytes() if isinstance(view, np.ndarray) else list(view)


@contextlib.contextmanager
def refused(
    *tensors: caffe2.Tensor, error: Refusal = c10.EnforceNotMet, match: str | None = None
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Assert that the block raises `error` and leaves every one of `tensors` as it was."""
    before = [state_of(tensor) for tensor in tensors]
    with pytest.raises(error, match=match) as caught:
        yield caught
    assert [state_of(tensor) for tensor in tensors] == before


def filled(dims: Any, dtype: Any = "float32", first: int = 1) -> caffe2.Tensor:
    """A tensor of the numbers `first`, `first + 1`, …, as `b"1"`, … in a tensor of strings."""
    tensor = caffe2.empty(dims, dtype)
    view = tensor.mutable_data(dtype)
    for i in range(len(view)):
        view[i] = b"%d" % (first + i) if tensor.IsType("string") else first + i
    return tensor


def values(tensor: caffe2.Tensor) -> list[Any]:
    """The elements as a flat list of Python objects."""
    view = tensor.data()
    return view.tolist() if isinstance(view, np.ndarray) else list(view)
