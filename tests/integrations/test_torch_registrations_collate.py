# SPDX-License-Identifier: Apache-2.0
"""``default_collate`` and DataLoader with tensors of the bridge."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

import bridge
from bridge import at, caffe2

# JAX, where another test imported it, warns at a fork, by which DataLoader starts its workers.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called:RuntimeWarning")


class Rows(Dataset[Any]):
    """Samples with a tensor of either class, and a number."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> dict[str, Any]:
        x = at.full((2,), float(index))
        return {"at": x, "nested": (caffe2.Tensor(x), index)}


def test_a_batch_is_one_tensor() -> None:
    x = at.arange(6).reshape(2, 3)
    batch = default_collate([x, x.add(1), x.t().t()])
    assert type(batch) is torch.Tensor
    assert batch.tolist() == [x.tolist(), x.add(1).tolist(), x.tolist()]
    batch.zero_()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_read_only_and_reversed_memory() -> None:
    x = bridge.from_dlpack(b"abc")
    assert default_collate([x, x.flip(0), x[::-1]]).tolist() == [
        [97, 98, 99],
        [99, 98, 97],
        [99, 98, 97],
    ]
    assert x.readonly


def test_samples_of_different_sizes_are_refused() -> None:
    with pytest.raises(RuntimeError, match="equal size"):
        default_collate([at.zeros(2), at.zeros(3)])


@pytest.mark.parametrize("start", [None, "fork", "spawn"])
def test_a_loader_collates_tensors_to_torch(start: str | None) -> None:
    loader = DataLoader(
        Rows(), batch_size=3, num_workers=2 if start else 0, multiprocessing_context=start
    )
    batches = list(loader)
    assert [batch["at"].tolist() for batch in batches] == [
        [[0.0] * 2, [1.0] * 2, [2.0] * 2],
        [[3.0] * 2, [4.0] * 2, [5.0] * 2],
    ]
    for batch in batches:
        tensor, numbers = batch["nested"]
        assert type(tensor) is type(numbers) is torch.Tensor
        assert torch.equal(tensor, batch["at"])


def test_a_loader_passes_samples_on_without_batches() -> None:
    loader = DataLoader(Rows(), batch_size=None, num_workers=1, multiprocessing_context="fork")
    assert [sample["at"].tolist() for sample in loader] == [[float(i)] * 2 for i in range(6)]
