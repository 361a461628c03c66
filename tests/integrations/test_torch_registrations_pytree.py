# SPDX-License-Identifier: Apache-2.0
"""torch's function transforms, which see arguments through pytrees."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import bridge
from bridge import at

RELEASE = tuple(map(int, torch.__version__.split(".")[:2]))


def test_vmap_maps_over_tensors() -> None:
    x, y = at.arange(6.0).reshape(2, 3), at.ones(3)
    doubled = torch.vmap(lambda row: row * 2)(x)
    assert doubled.tolist() == (x * 2).tolist()
    added = torch.vmap(lambda row, other: row + other, in_dims=(0, None))(x, y)
    assert added.tolist() == (x + y).tolist()
    columns = torch.vmap(lambda named: named["a"].sum(), in_dims=1)({"a": x})
    assert columns.tolist() == x.sum(0).tolist()
    product = torch.vmap(torch.mv)(at.ones(3, 4, 4), torch.ones(3, 4))
    assert product.tolist() == [[4.0] * 4] * 3


def test_vmap_takes_functions_of_at_and_tensors_from_outside() -> None:
    x, outside = at.arange(6.0).reshape(2, 3), at.ones(3)
    assert torch.vmap(lambda row: at.add(row, outside))(x).tolist() == (x + 1).tolist()
    assert torch.vmap(lambda row: row + outside)(x).tolist() == (x + 1).tolist()
    assert torch.vmap(lambda row: outside - row)(x).tolist() == (1 - x).tolist()


def test_grad_and_jacrev_differentiate_functions_of_tensors() -> None:
    x = at.tensor([1.0, 2.0])
    assert torch.func.grad(lambda a: (a * a).sum())(x).tolist() == [2.0, 4.0]
    assert torch.func.jacrev(lambda a: a * a)(x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    per_sample = torch.vmap(torch.func.grad(lambda a: a.pow(3)))(x)
    assert per_sample.tolist() == [3.0, 12.0]


def test_memory_is_shared_unless_it_is_read_only() -> None:
    x, readonly = at.zeros(2), bridge.from_dlpack(bytes(2))
    torch.vmap(lambda row: row.add_(1))(x)
    assert x.tolist() == [1.0, 1.0]
    torch.vmap(lambda row: row.add_(1))(readonly)
    assert readonly.tolist() == [0, 0]


def test_tensors_are_leaves_of_trees_unless_torch_cannot_have_them() -> None:
    x = at.arange(3)
    tree: Any = {
        "x": [x],
        "words": bridge.asarray(["a"]),
        "none": at.Tensor(),
        "own": torch.ones(1),
    }
    leaves, spec = pytree.tree_flatten(tree)
    assert len(leaves) == 2
    back = pytree.tree_unflatten(leaves, spec)
    assert type(back["x"][0]) is at.Tensor
    assert bridge.shares_memory(back["x"][0], x)
    assert back["words"] is tree["words"]
    assert back["none"] is tree["none"]
    assert pytree.tree_map(lambda leaf: leaf.dim(), tree)["x"] == [1]


@pytest.mark.skipif(RELEASE < (2, 9), reason="taken from torch 2.9 on")
@pytest.mark.parametrize("strict", [False, True])
def test_export_takes_at_tensors_as_examples(strict: bool) -> None:
    if strict and RELEASE < (2, 13):
        pytest.skip("torch 2.9 cannot trace operators of classes that are not torch's")

    class Module(torch.nn.Module):
        def forward(self, x: Any, others: dict[str, Any]) -> Any:
            return x * 2 + others["y"]

    x, y = at.arange(6.0).reshape(2, 3), at.ones(3)
    module = torch.export.export(Module(), (x, {"y": y}), strict=strict).module()
    inputs = (x, {"y": y}) if strict else (x.to_torch(), {"y": y.to_torch()})
    assert module(*inputs).tolist() == (x * 2 + y).tolist()


def test_the_path_of_a_tensor_ends_in_the_call_that_gives_torchs() -> None:
    ((path, leaf),), _ = pytree.tree_flatten_with_path({"a": at.ones(2)})
    assert pytree.keystr(path) == "['a'].to_torch()"
    assert type(leaf) is torch.Tensor
