# SPDX-License-Identifier: Apache-2.0
"""What has to be copied is copied once, by whichever of its reasons; nothing of no elements is."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import bridge
from bridge import caffe2
from tests.helpers.dlpack_producer import Producer, TensorSpec

# of 32 bits, which JAX takes whatever its settings
FOREIGN = np.arange(6.0).astype(">f4").reshape(2, 3)
ODD = np.zeros(4, "i1,f4")["f1"]
LAZY = {
    "conjugate": torch.arange(6).to(torch.complex64).reshape(2, 3).conj(),
    "negative": torch.arange(6).to(torch.complex64).mul(1j).reshape(2, 3).conj().imag,
    "transposed conjugate": torch.arange(6).to(torch.complex64).reshape(2, 3).mH,
}
TARGETS = ("at", "caffe2", "numpy", "torch", "jax", "tensorflow")


def copied(call: Any) -> tuple[int, int]:
    with bridge.audit() as log:
        call()
    return len(log.records), log.copied_bytes


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", [FOREIGN, ODD, *LAZY.values()], ids=["foreign", "odd", *LAZY])
def test_a_conversion_that_copies_copies_once(source: Any, target: str, copy: bool | None) -> None:
    if target in ("jax", "tensorflow"):
        pytest.importorskip(target)
    if target == ("numpy" if isinstance(source, np.ndarray) else "torch"):
        return  # it stays where it is
    call = lambda: bridge.convert(source, target, copy=copy)  # noqa: E731
    assert copied(call) == (1, source.nbytes)


@pytest.mark.parametrize("name", ["int4", "uint2", "float4_e2m1fn", "float8_e5m2"])
@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("target", ["jax", "tensorflow"])
def test_a_conversion_of_narrow_types_copies_once(
    name: str, target: str, copy: bool | None
) -> None:
    pytest.importorskip(target)
    source = np.zeros((2, 8), getattr(ml_dtypes, name))[:, ::2]
    assert copied(lambda: bridge.convert(source, target, copy=copy)) == (1, 8)


@pytest.mark.parametrize("name", ["int4", "float4_e2m1fn"])
def test_nothing_is_copied_where_there_are_no_elements(name: str) -> None:
    jax = pytest.importorskip("jax")
    pytest.importorskip("tensorflow")
    empty = np.zeros((0, 3), getattr(ml_dtypes, name))
    there = jax.numpy.asarray(empty)
    with bridge.no_copy():
        for target in ("jax", "tensorflow"):
            out = bridge.convert(empty, target, copy=False)
            assert tuple(out.shape) == (0, 3)
        back = bridge.from_dlpack(there, copy=False)
    assert back.dtype().name == name
    assert tuple(back.sizes()) == (0, 3)
    assert not bridge.shares_memory(there, there)


def test_a_copy_of_foreign_byte_order_is_aligned_for_frameworks() -> None:
    x = bridge.from_dlpack(FOREIGN)
    assert x.data_ptr() % 64 == 0
    assert x.tolist() == FOREIGN.tolist()
    assert not x.readonly
    caffe2.Tensor(x).mutable_data("float64")[0] = 7
    assert FOREIGN[0, 0] == 0


def test_a_producer_with_nothing_but_dlpack_is_copied_once() -> None:
    producer = Producer(TensorSpec.of_array(np.arange(5.0)))
    with bridge.audit() as log:
        bridge.from_dlpack(producer, copy=True)
    assert [record.nbytes for record in log if record.copied] == [40]
