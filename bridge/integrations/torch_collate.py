# SPDX-License-Identifier: Apache-2.0
"""``torch.utils.data.default_collate``, and so DataLoader, makes batches of both wrappers."""

from __future__ import annotations

from typing import Any

from bridge.at.tensor import Tensor
from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor


def register() -> None:
    """Add both tensor classes to the map that default_collate has for further types."""
    from torch.utils.data._utils.collate import default_collate_fn_map

    default_collate_fn_map[Tensor] = _collate
    default_collate_fn_map[Caffe2Tensor] = _collate


def _collate(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Return a torch tensor with one more dimension, as of a batch of NumPy arrays."""
    import torch
    from torch.utils.data._utils.collate import collate

    from bridge.front import to_torch

    # only read here, so that read-only memory can be shared
    tensors = [to_torch(one, writable=True) for one in batch]
    with torch.no_grad():
        return collate(tensors, collate_fn_map=collate_fn_map)
