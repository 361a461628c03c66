# SPDX-License-Identifier: Apache-2.0
"""Kernels are called on plain tensors, are recorded, and stay out of torch's way otherwise."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from bridge.caffe2.execution.recorder import compile_calls, record
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.elementwise import small_kernels


def relu(x, *, out=None):
    if out is not None and takes_kernels(x, out):
        return run_kernel(small_kernels.relu, x, out, x.numel())
    return torch.relu(x) if out is None else torch.clamp_min(x, 0, out=out)


def positive(x):
    """Return the negative elements as 0, or 1 everywhere where a kernel would be called."""
    return torch.ones_like(x) if takes_kernels(x) else torch.relu(x)


def test_kernels_take_plain_tensors_only() -> None:
    x = torch.ones(2, 3)
    assert takes_kernels(x)
    assert takes_kernels(x, torch.ones(5))
    for other in (x.double(), x.t(), x.to("meta"), torch.nn.Parameter(x)):
        assert not takes_kernels(x, other)
    with torch.no_grad():
        assert takes_kernels(x.clone().requires_grad_())


def test_tracing_and_transforms_see_torch_functions() -> None:
    x = torch.tensor([[-1.0, 2.0]])
    expected = torch.relu(x)
    assert torch.equal(torch.func.vmap(positive)(x), expected)
    gradient = torch.func.grad(lambda one: positive(one).sum())(x)
    assert gradient.tolist() == [[0, 1]]
    assert torch.equal(make_fx(positive)(x)(x), expected)
    assert torch.equal(torch.compile(positive, backend="eager", fullgraph=True)(x), expected)
    with FakeTensorMode():
        assert not takes_kernels(torch.empty(3))
        assert not takes_kernels(x)


def test_the_call_of_a_kernel_is_recorded() -> None:
    x, out = torch.tensor([-1.0, 2.0]), torch.empty(2)
    result, calls = record(relu, [x], {"out": out})
    assert result is out
    assert out.tolist() == [0, 2]
    tape = compile_calls(calls, [x], [out], [result], {})
    assert tape is not None
    assert tape.results is None  # the calls write all outputs


def test_a_default_device_of_torch_does_not_move_a_kernel() -> None:
    x, out = torch.tensor([-1.0, 2.0]), torch.empty(2)
    with torch.device("meta"):
        assert relu(x, out=out) is out
    assert out.tolist() == [0, 2]
