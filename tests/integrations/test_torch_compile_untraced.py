# SPDX-License-Identifier: Apache-2.0
"""The bridge's functions inside a ``torch.compile`` that does not trace them: graphs are broken."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import bridge
from bridge import at


def add_one(t: Any) -> Any:
    return bridge.to_torch(bridge.from_dlpack(t.mul(2))) + 1


def test_a_graph_that_may_be_broken_has_the_values() -> None:
    compiled = torch.compile(add_one, backend="aot_eager")
    assert compiled(torch.ones(3)).tolist() == [3, 3, 3]
    x = bridge.from_dlpack(torch.ones(3))
    assert torch.compile(bridge.to_torch, backend="aot_eager")(x).tolist() == [1, 1, 1]
    is_ours = torch.compile(lambda t: type(bridge.from_dlpack(t)), backend="aot_eager")
    assert is_ours(torch.ones(3)) is at.Tensor


@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 9), reason="traced from torch 2.9 on"
)
def test_one_graph_is_an_error_that_names_the_version() -> None:
    torch._dynamo.reset()
    with pytest.raises(RuntimeError, match=r"torch 2\.9"):
        torch.compile(add_one, backend="aot_eager", fullgraph=True)(torch.ones(3))
