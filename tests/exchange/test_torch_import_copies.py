# SPDX-License-Identifier: Apache-2.0
"""to_torch(tensor, copy=True): a copy by torch, or an error where there is nothing to be copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import bridge
from tests.helpers.isolate import isolated


@isolated
def test_storages_that_were_freed_or_shrunk_are_not_copied() -> None:
    for left in (0, 4):
        for make in (lambda: torch.ones(8), lambda: torch.ones(4, 4)[1:, ::2]):
            t = make()
            t.untyped_storage().resize_(left)
            with pytest.raises(BufferError, match="freed or resized"):
                bridge.to_torch(t, copy=True)
            assert bridge.to_torch(t) is t


def test_uninitialised_parameters_are_not_copied() -> None:
    with pytest.raises(BufferError, match="uninitialised"):
        bridge.to_torch(torch.nn.LazyLinear(3).weight, copy=True)


def test_sparse_tensors_are_copied() -> None:
    sparse = torch.eye(3).to_sparse()
    copy = bridge.to_torch(sparse, copy=True)
    assert copy is not sparse
    assert torch.equal(copy.to_dense(), torch.eye(3))


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args: Any, **options: Any) -> Any:
        raise RuntimeError("not for you")


def test_a_subclass_that_refuses_a_copy_is_named_in_the_error() -> None:
    t = torch.arange(3.0).as_subclass(Refusing)
    with pytest.raises(BufferError, match="does not copy this Refusing: not for you"):
        bridge.to_torch(t, copy=True)


@pytest.mark.parametrize("copy", [None, False, True])
def test_a_subclass_is_not_asked_for_its_memory(copy: bool | None) -> None:
    plain = torch.arange(3.0)
    t = plain.as_subclass(Refusing)
    x = bridge.from_dlpack(t, copy=copy)
    assert (x.data_ptr() == plain.data_ptr()) is (copy is not True)
    assert x.tolist() == [0, 1, 2]
    assert bridge.to_numpy(t, copy=copy).tolist() == [0, 1, 2]
    assert bridge.asarray(t, copy=copy).tolist() == [0, 1, 2]
    assert bridge.explain(t).to_dict()["sizes"] == [3]
    assert bridge.shares_memory(t, plain)


def test_lazy_bits_are_resolved_into_row_major_memory() -> None:
    t = torch.arange(6).to(torch.complex64).reshape(2, 3).mH
    x = bridge.from_dlpack(t)
    assert x.is_contiguous()
    assert np.array_equal(x.numpy(), t.resolve_conj().numpy())
