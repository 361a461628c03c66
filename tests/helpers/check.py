# SPDX-License-Identifier: Apache-2.0
"""One look at a tensor of the package through every accessor it has.

`check_tensor` compares what each of them shows with one expectation, so that a test of one route
in finds the accessor that disagrees.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bridge import at
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_consumer import (
    Borrowed,
    ExchangeTable,
    Imported,
    compact_strides,
    read_elements,
    take,
)
from tests.helpers.element_types import FLOAT32, ElementType

NUMPY_MAX_NDIM = 64


@dataclasses.dataclass(frozen=True)
class Expected:
    """What every accessor must show; `strides` in elements, `data` in row-major order."""

    element: ElementType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int | None
    data: bytes | None
    readonly: bool
    device: tuple[int, int]

    @property
    def numel(self) -> int:
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1

    @property
    def contiguous(self) -> bool:
        return self.numel == 0 or self.same_strides(compact_strides(self.shape))

    def same_strides(self, strides: Sequence[int], unit: int = 1) -> bool:
        """Whether `strides`, in `1 / unit` of an element, lead to the same elements.

        Only axes with two elements or more are ever stepped along.
        """
        assert len(strides) == len(self.shape)
        return self.numel == 0 or all(
            stride == own * unit
            for stride, own, extent in zip(strides, self.strides, self.shape, strict=True)
            if extent > 1
        )


def check_tensor(
    x: Any,
    shape: Sequence[int],
    element: ElementType = FLOAT32,
    *,
    strides: Sequence[int] | None = None,
    address: int | None = None,
    data: bytes | None = None,
    readonly: bool = False,
    device: tuple[int, int] = (abi.CPU, 0),
) -> None:
    """Assert that all accessors of `x`, a CPU tensor of either wrapper, show the same tensor.

    `strides` in elements, compact unless given. `address` and `data` (row-major bytes) are not
    compared with an expectation where they are `None`, only with each other.
    """
    shape = tuple(shape)
    if address is None:
        address = _address(x)
    strides = compact_strides(shape) if strides is None else tuple(strides)
    if data is None:
        data = read_elements(address, shape, strides, element.itemsize)
    expected = Expected(element, shape, strides, address, data, readonly, device)
    _check_metadata(x, expected)
    _check_dlpack(x, expected)
    _check_buffer(x, expected)
    _check_numpy(x, expected)
    _check_torch(x, expected)


def _address(x: Any) -> int:
    return int(x.data_ptr() if isinstance(x, at.Tensor) else x.raw_data())


def _check_metadata(x: Any, expected: Expected) -> None:
    shape, element = expected.shape, expected.element
    ndim = len(shape)
    assert x.defined()
    assert bool(x.sizes() == shape), (x.sizes(), shape)
    assert tuple(x.shape) == shape
    assert expected.same_strides(tuple(x.strides())), (tuple(x.strides()), expected.strides)
    for axis in range(ndim):
        assert x.size(axis) == x.size(axis - ndim) == shape[axis]
        assert x.stride(axis) == x.stride(axis - ndim) == x.strides()[axis]
    assert x.dim() == ndim
    assert x.numel() == expected.numel
    assert x.itemsize() == x.dtype().itemsize == element.itemsize
    assert x.nbytes() == expected.numel * element.itemsize
    assert x.is_contiguous() == expected.contiguous
    assert x.dtype().name == element.name
    assert x.dtype().dlpack == element.dlpack
    if ndim:
        assert len(x) == shape[0]
    else:
        with pytest.raises(TypeError):
            len(x)
    if expected.numel:
        assert _address(x) == expected.address
    if isinstance(x, at.Tensor):
        assert x.ndim == ndim
        assert x.readonly is expected.readonly
    assert x.__dlpack_device__() == expected.device
    assert element.name in repr(x)


def _check_dlpack(x: Any, expected: Expected) -> None:
    """Through `__dlpack__` of both kinds and both reading functions of the exchange table."""
    table = ExchangeTable(type(x))
    for taken in (take(x), table.take(x)):
        _check_imported(taken, expected)
        assert taken.version is not None
        assert taken.version[0] == 1
        assert taken.readonly is expected.readonly
        assert not taken.copied
        taken.release()
    _check_imported(table.borrow(x), expected)
    if expected.readonly:
        with pytest.raises(BufferError):
            x.__dlpack__()
    else:
        legacy = take(x, max_version=None)
        assert legacy.version is None
        _check_imported(legacy, expected)
        legacy.release()


def _check_imported(taken: Imported | Borrowed, expected: Expected) -> None:
    assert taken.shape == expected.shape
    assert taken.strides is not None, "DLPack 1.2 and later ask for strides"
    assert expected.same_strides(taken.strides), (taken.strides, expected.strides)
    assert taken.dtype == expected.element.dlpack
    assert taken.device == expected.device
    if expected.numel:
        assert taken.address == expected.address
    assert taken.data() == expected.data


def _check_buffer(x: Any, expected: Expected) -> None:
    if expected.element.format is None or len(expected.shape) > NUMPY_MAX_NDIM:
        return
    with memoryview(x) as view:
        assert view.shape == expected.shape
        assert view.itemsize == expected.element.itemsize
        assert view.nbytes == expected.numel * expected.element.itemsize
        assert view.strides is not None
        assert expected.same_strides(view.strides, unit=view.itemsize)
        assert view.readonly is expected.readonly
        # CPython compares the strides of empty buffers too, along which no step is made.
        assert not expected.numel or view.c_contiguous == expected.contiguous
        assert view.tobytes() == expected.data


def _check_numpy(x: Any, expected: Expected) -> None:
    if expected.element.numpy is None:
        return
    if len(expected.shape) > NUMPY_MAX_NDIM:
        with pytest.raises(BufferError):
            x.numpy()
        return
    for array in (x.numpy(), np.asarray(x)):
        assert type(array) is np.ndarray
        assert array.shape == expected.shape
        assert array.dtype == expected.element.numpy
        assert expected.same_strides(array.strides, unit=array.itemsize)
        assert array.flags.writeable is not expected.readonly
        if expected.numel:
            assert array.ctypes.data == expected.address
        assert array.tobytes() == expected.data
    # Lists do not tell empty shapes apart.
    if expected.element.format is not None and expected.numel and isinstance(x, at.Tensor):
        np.testing.assert_array_equal(np.array(x.tolist(), array.dtype), array)


def _check_torch(x: Any, expected: Expected) -> None:
    import torch

    if expected.element.torch is None:
        return
    t = x.to_torch()
    assert isinstance(t, torch.Tensor)
    assert tuple(t.shape) == expected.shape
    assert t.dtype is expected.element.torch
    shared = not expected.readonly and min(expected.strides, default=0) >= 0
    if expected.numel and shared:
        assert t.data_ptr() == expected.address
        assert expected.same_strides(t.stride())
    elif expected.numel and expected.readonly:
        assert t.data_ptr() != expected.address, "torch was given read-only memory to write"
    if expected.numel:
        itemsize = expected.element.itemsize
        assert read_elements(t.data_ptr(), t.shape, t.stride(), itemsize) == expected.data
