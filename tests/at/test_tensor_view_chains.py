# SPDX-License-Identifier: Apache-2.0
"""Views of views, and views of reversed tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10

from .comparing import ERRORS, expect_like_torch, pair

CHAINS: dict[str, Callable[[Any], Any]] = {
    "offset counts": lambda x: x[1:].as_strided((2, 2), (1, 2)),
    "offset given": lambda x: x[1:].as_strided((2, 2), (1, 2), 0),
    "view of rows": lambda x: x[1:].view(-1),
    "view of transposed": lambda x: x.t().view(2, 3, 4),
    "view that splits": lambda x: x[:, :4].view(4, 2, 2),
    "reshape that splits": lambda x: x[:, :4].reshape(4, 2, 2),
    "select of transposed": lambda x: x.transpose(0, 1).select(0, 2),
    "narrow twice": lambda x: x.narrow(0, 1, 3).narrow(1, 2, 3),
    "diagonal of transposed": lambda x: x.t().diagonal(1),
    "unfold of columns": lambda x: x[:, 1:].unfold(1, 2, 2),
    "expand of a row": lambda x: x[2:3].expand(5, 6),
    "permute of unsqueezed": lambda x: x.unsqueeze(1).permute(2, 1, 0),
    "squeeze of a column": lambda x: x[:, 1:2].squeeze(1),
    "flatten of a part": lambda x: x[1:].flatten(),
    "detach of a part": lambda x: x[1:, 2:].detach(),
    "steps": lambda x: x[::2, 1::3].t(),
}


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_views_of_views_agree_with_torch(chain: Callable[[Any], Any]) -> None:
    ours, theirs = pair((4, 6))
    expect_like_torch(chain(ours), chain(theirs))


# torch refuses to write where several elements of a view are one in memory.
OVERLAPPING = {"offset counts", "offset given", "expand of a row"}
WRITABLE = {name: chain for name, chain in CHAINS.items() if name not in OVERLAPPING}


@pytest.mark.parametrize("chain", WRITABLE.values(), ids=WRITABLE)
def test_writing_through_a_view_of_views_changes_the_tensor(chain: Callable[[Any], Any]) -> None:
    ours, theirs = pair((4, 6))
    expected = theirs.clone()
    chain(expected).copy_(torch.tensor(-1.0))
    chain(ours).copy_(at.tensor(-1.0))
    assert torch.equal(theirs, expected)
    assert ours.tolist() == expected.tolist()


IMPOSSIBLE: dict[str, Callable[[Any], Any]] = {
    "view of transposed": lambda x: x.t().view(24),
    "view of columns": lambda x: x[:, :4].view(2, 8),
    "view across a step": lambda x: x[::2].view(12),
    "view of expanded": lambda x: x[:1].expand(4, 6).view(24),
    "as_strided past a part": lambda x: x[1:].as_strided((24,), (1,)),
    "narrow past a narrow": lambda x: x.narrow(0, 1, 2).narrow(0, 1, 2),
    "expand of expanded": lambda x: x[:1].expand(4, 6).expand(5, 6),
}


@pytest.mark.parametrize("chain", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_views_that_torch_refuses_are_refused(chain: Callable[[Any], Any]) -> None:
    ours, theirs = pair((4, 6))
    with pytest.raises(RuntimeError):
        chain(theirs)
    with pytest.raises(ERRORS):
        chain(ours)


def test_views_of_negative_strides_agree_with_numpy() -> None:
    tensor = at.arange(6, dtype="float32").view(2, 3)
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)[::-1, ::-1]
    view = tensor[::-1, ::-1]
    assert view.strides() == (-3, -1)
    assert view.data_ptr() == tensor.data_ptr() + 20
    for ours, theirs in [
        (view.t(), expected.T),
        (view[0], expected[0]),
        (view.narrow(0, 1, 1), expected[1:]),
        (view.unsqueeze(0), expected[None]),
        (view.diagonal(), expected.diagonal()),
        (view.permute(1, 0), expected.T),
        (view[:, 1].expand(2, 2), np.broadcast_to(expected[:, 1], (2, 2))),
        (view[::-1, ::-1], expected[::-1, ::-1]),
        (view.reshape(6), expected.reshape(6)),
        (view.contiguous(), expected),
        (view.clone(), expected),
        (view.flatten(), expected.ravel()),
    ]:
        np.testing.assert_array_equal(ours.numpy(), theirs)
    assert view[::-1, ::-1].is_contiguous()
    assert view.dtype() == c10.float32
