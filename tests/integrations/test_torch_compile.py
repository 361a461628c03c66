# SPDX-License-Identifier: Apache-2.0
"""The bridge's functions inside ``torch.compile(fullgraph=True)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import bridge
from bridge import at
from bridge.front import from_dlpack, to_torch

pytestmark = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9), reason="traced from torch 2.9 on"
)

GRAPHS: dict[str, Callable[[Any], Any]] = {
    "to_torch": lambda t: bridge.to_torch(t) + 1,
    "to_torch by name": lambda t: to_torch(t, copy=None) + 1,
    "from_dlpack, torch's function": lambda t: torch.sin(bridge.from_dlpack(t)),
    "from_dlpack, methods": lambda t: from_dlpack(t).sin() * 2 - t,
    "from_dlpack, to_torch": lambda t: bridge.to_torch(torch.sin(bridge.from_dlpack(t)) * 2) @ t,
    "from_dlpack, to_torch()": lambda t: bridge.from_dlpack(t).mul(3).to_torch().add(1),
    "asarray": lambda t: bridge.asarray(t, dtype=torch.float64).to_torch() * 2,
    "device": lambda t: bridge.to_torch(bridge.from_dlpack(t, device="cpu")) * 2,
}


@pytest.fixture(autouse=True)
def _fresh_graphs() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, fullgraph=True, backend="aot_eager")


@pytest.mark.parametrize("function", GRAPHS.values(), ids=GRAPHS)
def test_functions_compile_to_one_graph(function: Callable[[Any], Any]) -> None:
    t = torch.rand(3, generator=torch.Generator().manual_seed(0))
    expected = function(t)
    found = compiled(function)(t)
    assert isinstance(found, torch.Tensor)
    assert torch.equal(found, bridge.to_torch(expected))


def test_results_of_to_torch_are_plain() -> None:
    assert (
        type(compiled(lambda t: bridge.to_torch(bridge.from_dlpack(t)))(torch.ones(2)))
        is torch.Tensor
    )


def test_memory_is_shared_or_copied_as_said() -> None:
    def add_in_place(t: Any, copy: bool | None) -> Any:
        shared = bridge.from_dlpack(t, copy=copy)
        shared.add_(1)
        return bridge.to_torch(shared, copy=copy)

    for copy, expected in ((None, 2.0), (False, 2.0), (True, 1.0)):
        t = torch.ones(2)
        assert compiled(add_in_place)(t, copy).tolist() == [2.0, 2.0]
        assert t.tolist() == [expected] * 2


def test_gradients_pass_through_compiled_functions() -> None:
    t = torch.ones(2, requires_grad=True)
    compiled(lambda t: bridge.to_torch(t * 2).sum())(t).backward()
    assert t.grad is not None
    assert t.grad.tolist() == [2.0, 2.0]

    def refused(t: Any) -> Any:
        try:
            return bridge.from_dlpack(t)
        except BufferError:
            return bridge.from_dlpack(t.detach()) + 1

    assert compiled(refused)(t).tolist() == [2.0, 2.0]


def test_other_tensors_leave_the_graph() -> None:
    x = at.ones(2)

    def function(t: Any) -> Any:
        return t + bridge.to_torch(x)

    assert torch.compile(function, backend="eager")(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(Exception, match="traced for torch's tensors only"):
        compiled(function)(torch.ones(2))


def test_eager_calls_are_as_before() -> None:
    t = torch.ones(2)
    compiled(lambda t: bridge.to_torch(t) + 1)(t)
    assert bridge.to_torch(t) is t
    assert type(bridge.from_dlpack(t)) is at.Tensor
