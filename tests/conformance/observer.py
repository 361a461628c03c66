# SPDX-License-Identifier: Apache-2.0
"""Compares live tensors with what was recorded of the real ones, field by field."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import pytest

from bridge import c10, caffe2


class Buffers:
    """Which live address stands for which recorded buffer.

    A freed address may come back from an ordinary allocator, so only what is held at
    one time, or from one step to the next, is compared. Addresses in `permanent` do not come back:
    there one buffer is one address for the whole sequence.
    """

    def __init__(self, permanent: Container[int] = ()) -> None:
        self._permanent = permanent
        self._address_of: dict[int, int] = {}

    def check(self, pairs: list[tuple[str, int, int]]) -> None:
        """`pairs`: (tensor, recorded buffer, live address) of all tensors with memory."""
        now = {buffer: at for buffer, at in self._address_of.items() if at in self._permanent}
        for name, buffer, address in pairs:
            known = self._address_of.get(buffer, now.get(buffer, address))
            assert address == known, f"{name}: moved to another buffer"
            now[buffer] = address
        assert len(set(now.values())) == len(now), f"two buffers at one address: {pairs}"
        self._address_of = now

    def permanent(self, buffers: list[int]) -> set[int]:
        """The addresses of those of `buffers` that have one for ever."""
        addresses = {self._address_of.get(buffer) for buffer in buffers}
        return {at for at in addresses if at is not None and at in self._permanent}

    def seen(self) -> set[int]:
        return set(self._address_of.values())


def check_tensors(
    tensors: dict[str, caffe2.Tensor], expected: dict[str, dict[str, Any]], buffers: Buffers
) -> None:
    """Assert that every tensor shows what was recorded."""
    assert tensors.keys() == expected.keys()
    pairs = []
    for name, fields in expected.items():
        tensor = tensors[name]
        assert bool(tensor) is tensor.defined() is fields["defined"], name
        if not fields["defined"]:
            continue
        _check_metadata(name, tensor, fields)
        assert tensor.is_same(tensors[fields["same_as"]]), name
        address = tensor.storage().data_ptr()
        assert (address == 0) is (fields["buffer"] is None), f"{name}: allocated or not"
        if address:
            pairs.append((name, fields["buffer"], address))
        _check_elements(name, tensor, fields, address)
    _check_identity(tensors, expected)
    buffers.check(pairs)


def _check_metadata(name: str, tensor: caffe2.Tensor, fields: dict[str, Any]) -> None:
    dtype, storage = tensor.dtype(), tensor.storage()
    seen = {
        "sizes": list(tensor.sizes()),
        "strides": list(tensor.strides()),
        "numel": tensor.numel(),
        "dtype": dtype.name if dtype else "",
        "itemsize": tensor.itemsize(),
        "nbytes": tensor.nbytes(),
        "capacity": storage.nbytes(),
        "use_count": storage.use_count(),
        "storage_initialized": tensor.storage_initialized(),
        "dtype_initialized": tensor.dtype_initialized(),
        "contiguous": tensor.is_contiguous(),
    }
    differing = {key: (seen[key], fields[key]) for key in seen if seen[key] != fields[key]}
    assert not differing, f"{name}: (seen, recorded) differ: {differing}"
    assert storage.capacity() == tensor.capacity_nbytes() == fields["capacity"], name
    assert storage.unique() is (fields["use_count"] == 1), name
    assert tensor.dim() == len(fields["sizes"]), name


def _check_elements(name: str, tensor: caffe2.Tensor, fields: dict[str, Any], address: int) -> None:
    if not fields["dtype_initialized"] or not fields["storage_initialized"]:
        with pytest.raises(c10.EnforceNotMet):
            tensor.data()
        with pytest.raises(c10.EnforceNotMet):
            tensor.raw_data()
        return
    view = tensor.data()
    assert len(view) == fields["numel"], name
    if fields["numel"] == 0:
        assert tensor.raw_data() == 0, name
        return
    assert tensor.raw_data() == address + fields["offset"] * fields["itemsize"], name
    if "strings" in fields:
        assert [element.hex() for element in view] == fields["strings"], name
        return
    assert view.ctypes.data == tensor.raw_data(), name
    # `..` stands for a byte that nothing has written.
    recorded = fields["bytes"]
    known = np.array([recorded[i] != "." for i in range(0, len(recorded), 2)])
    wanted = np.frombuffer(bytes.fromhex(recorded.replace(".", "0")), np.uint8)
    seen = view.view(np.uint8)
    np.testing.assert_array_equal(seen[known], wanted[known], err_msg=name)


def _check_identity(tensors: dict[str, caffe2.Tensor], expected: dict[str, dict[str, Any]]) -> None:
    """Two names are one TensorImpl exactly where they were."""
    defined = [name for name, fields in expected.items() if fields["defined"]]
    for name in defined:
        for other in defined:
            same = expected[name]["same_as"] == expected[other]["same_as"]
            assert tensors[name].is_same(tensors[other]) is same, (name, other)
