# SPDX-License-Identifier: Apache-2.0
"""einops with at.Tensors."""

from __future__ import annotations

import pytest
import torch

import bridge
from bridge import at

einops = pytest.importorskip("einops")


def six() -> at.Tensor:
    return at.arange(6.0).reshape(2, 3)


def test_rearrange_gives_views() -> None:
    x = six()
    for pattern in ("a b -> b a", "a b -> (a b)", "a b -> a 1 b"):
        found = einops.rearrange(x, pattern)
        assert type(found) is at.Tensor
        assert bridge.shares_memory(found, x)
        assert found.tolist() == einops.rearrange(x.to_torch(), pattern).tolist()


@pytest.mark.parametrize("operation", ["min", "max", "sum", "mean", "prod"])
def test_reduce_agrees_with_einops_on_torch(operation: str) -> None:
    found = einops.reduce(six(), "a b -> b", operation)
    assert found.tolist() == einops.reduce(six().to_torch(), "a b -> b", operation).tolist()


def test_repeat_einsum_and_pack_agree_with_einops_on_torch() -> None:
    x, t = six(), six().to_torch()
    assert torch.equal(
        einops.repeat(x, "a b -> (a two) b", two=2).to_torch(),
        einops.repeat(t, "a b -> (a two) b", two=2),
    )
    assert einops.einsum(x, x, "a b, c b -> a c").tolist() == (t @ t.T).tolist()
    packed, shapes = einops.pack([x, x], "a *")
    assert packed.tolist() == torch.cat([t, t], 1).tolist()
    assert [part.tolist() for part in einops.unpack(packed, shapes, "a *")] == [x.tolist()] * 2
    assert einops.rearrange([x, x], "n a b -> a (n b)").tolist() == packed.tolist()


def test_parse_shape_and_asnumpy_take_tensors() -> None:
    x = six()
    assert einops.parse_shape(x, "a b") == {"a": 2, "b": 3}
    assert bridge.shares_memory(einops.asnumpy(x), x)


def test_other_tensors_are_as_before() -> None:
    assert type(einops.rearrange(torch.ones(2, 3), "a b -> b a")) is torch.Tensor
    with pytest.raises(RuntimeError, match="unknown to einops"):
        einops.rearrange(object(), "a -> a")
