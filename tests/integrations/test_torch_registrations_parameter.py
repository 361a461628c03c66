# SPDX-License-Identifier: Apache-2.0
"""`torch.nn.Parameter` of the bridge's tensors."""

from __future__ import annotations

import inspect

import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.integrations import torch_registrations


@pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor])
def test_a_parameter_is_on_the_memory(wrap: type) -> None:
    x = at.ones(2, 3)
    parameter = torch.nn.Parameter(wrap(x))
    assert type(parameter) is torch.nn.Parameter
    assert parameter.requires_grad
    assert parameter.data_ptr() == x.data_ptr()
    layer = torch.nn.Linear(3, 2)
    layer.weight = parameter
    layer(torch.ones(1, 3)).sum().backward()
    with torch.no_grad():
        parameter -= parameter.grad
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_a_parameter_of_integers_needs_requires_grad_false() -> None:
    parameter = torch.nn.Parameter(at.arange(3), requires_grad=False)
    assert not parameter.requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        torch.nn.Parameter(at.arange(3))


def test_read_only_memory_is_copied_as_by_to_torch() -> None:
    with bridge.audit() as log:
        parameter = torch.nn.Parameter(bridge.from_dlpack(b"abc"), requires_grad=False)
    assert parameter.tolist() == [97, 98, 99]
    assert log.copied_bytes == 3


def test_torchs_own_tensors_are_taken_as_before() -> None:
    torch_registrations.register()  # once more changes nothing
    t = torch.ones(2)
    assert torch.nn.Parameter(t).data_ptr() == t.data_ptr()
    assert torch.nn.Parameter().shape == (0,)
    assert list(inspect.signature(torch.nn.Parameter.__new__).parameters) == [
        "cls", "data", "requires_grad",
    ]  # fmt: skip


def test_an_at_tensor_refuses_to_require_gradients() -> None:
    x = at.ones(2)
    assert x.requires_grad_(False) is x
    with pytest.raises(RuntimeError, match="to_torch"):
        x.requires_grad_()
