# SPDX-License-Identifier: Apache-2.0
"""Repeated calls of a module: values, memory, what is noticed."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

WEIGHT = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


def affine() -> Any:
    """Return a module of an FC and a Relu in place, on blobs "w" and "b"."""
    workspace.FeedBlob("w", WEIGHT.numpy())
    workspace.FeedBlob("b", np.linspace(-1, 1, 4, dtype=np.float32))
    net = core.Net("affine")
    net.FC(["x", "w", "b"], "y")
    net.Relu("y", "y")
    return caffe2.to_module(net, inputs=["x"], outputs=["y"])


def by_hand(module: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.addmm(module.get_blob("b"), x, module.get_blob("w").t()).relu()


def batch(seed: int, rows: int = 3) -> torch.Tensor:
    return torch.randn(rows, 6, generator=torch.Generator().manual_seed(seed))


def warm(module: Any, *inputs: Any) -> None:
    """Call the module until it plays a tape."""
    for _ in range(4):
        module(*inputs)


def test_outputs_of_calls_are_tensors_of_their_own() -> None:
    module = affine()
    found = [module(batch(seed)) for seed in range(6)]
    for seed, one in enumerate(found):
        torch.testing.assert_close(one, by_hand(module, batch(seed)))
    assert len({one.data_ptr() for one in found}) == 6
    assert not workspace.HasBlob("y")


def test_a_module_follows_other_sizes() -> None:
    module = affine()
    for rows in (3, 5, 3, 3, 5, 5, 0, 0, 0, 1, 1, 1):
        x = batch(rows, rows)
        torch.testing.assert_close(module(x), by_hand(module, x))


def test_inputs_of_any_strides_and_frameworks_are_taken() -> None:
    module = affine()
    warm(module, batch(0))
    x = batch(1, 6).t()[:3]
    torch.testing.assert_close(module(x), by_hand(module, x))
    torch.testing.assert_close(module(x.numpy()), by_hand(module, x))
    torch.testing.assert_close(module(x=x), by_hand(module, x))
    negated = torch._neg_view(batch(1))
    torch.testing.assert_close(module(negated), by_hand(module, -batch(1)))


def give_data(module: Any) -> None:
    module.get_blob("w").data = -WEIGHT


def give_parameter(module: Any) -> None:
    module._parameters["w"] = torch.nn.Parameter(WEIGHT * 2)


def give_transposed(module: Any) -> None:
    module.get_blob("w").data = WEIGHT.t().contiguous().t()


def write(module: Any) -> None:
    with torch.no_grad():
        module.get_blob("w").mul_(3)


def write_blob(module: Any) -> None:
    workspace.FetchTorch("w").zero_()


def load(module: Any) -> None:
    module.load_state_dict({"w": WEIGHT + 1, "b": torch.ones(4)}, assign=True)


@pytest.mark.parametrize(
    "change", [give_data, give_parameter, give_transposed, write, write_blob, load]
)
def test_changes_of_parameters_are_noticed(change: Callable[[Any], None]) -> None:
    module = affine()
    warm(module, batch(0))
    change(module)
    for _ in range(3):
        torch.testing.assert_close(module(batch(1)), by_hand(module, batch(1)))


def test_moved_and_copied_modules_compute_the_same() -> None:
    module = affine()
    warm(module, batch(0))
    double = copy.deepcopy(module).to(torch.float64)
    warm(module, batch(0))
    for _ in range(5):
        x = batch(1).double()
        torch.testing.assert_close(double(x), by_hand(double, x))
    back = double.to(torch.float32)
    for _ in range(3):
        torch.testing.assert_close(back(batch(1)), by_hand(back, batch(1)))


def test_gradients_are_computed_when_they_are_wanted() -> None:
    module = affine()
    warm(module, batch(0))
    x = batch(1).requires_grad_()
    module(x).sum().backward()
    expected = batch(1).requires_grad_()
    by_hand(module, expected).sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)
    module.requires_grad_()
    assert module(batch(1)).requires_grad
    with torch.no_grad():
        assert not module(batch(1)).requires_grad


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_calls_without_autograd_give_the_same_values(mode: Any) -> None:
    module = affine().requires_grad_()
    with mode():
        warm(module, batch(0))
        torch.testing.assert_close(module(batch(1)), by_hand(module, batch(1)))
    torch.testing.assert_close(module(batch(1)), by_hand(module, batch(1)))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is :DeprecationWarning")
def test_transforms_and_modes_of_torch_give_right_values() -> None:
    module = affine()
    warm(module, batch(0))
    x = torch.stack([batch(1), batch(2)])
    torch.testing.assert_close(torch.func.vmap(module)(x)[1], by_hand(module, batch(2)))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(batch(1), batch(2))
        tangents = [
            torch.autograd.forward_ad.unpack_dual(y).tangent
            for y in (module(dual), by_hand(module, dual))
        ]
    torch.testing.assert_close(*tangents)
    parameters = {"w": WEIGHT * 2, "b": torch.zeros(4)}
    found = torch.func.functional_call(module, parameters, (batch(1),))
    torch.testing.assert_close(found, (batch(1) @ (WEIGHT * 2).t()).relu())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert module(batch(1)).dtype is torch.bfloat16
    torch.testing.assert_close(module(batch(1)), by_hand(module, batch(1)))


def test_writes_neither_parameters_nor_inputs() -> None:
    workspace.FeedBlob("w", np.array([2.0, 3.0], np.float32))
    net = core.Net("overwrites")
    net.Mul(["x", "w"], "x")
    net.Add(["x", "w"], "w")
    net.Relu("w", "w")
    net.Proto().external_output.extend(["x", "w"])
    module = caffe2.to_module(net, inputs=["x"])
    x = torch.tensor([1.0, -2.0])
    for _ in range(5):
        assert [one.tolist() for one in module(x)] == [[2.0, -6.0], [4.0, 0.0]]
    assert x.tolist() == [1.0, -2.0]
    assert workspace.FetchBlob("w").tolist() == [2.0, 3.0]


def test_dropout_follows_the_mode() -> None:
    net = core.Net("dropout")
    net.Dropout("x", ["y", "mask"], ratio=0.5, is_test=0)
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    x = torch.ones(1000)
    for _ in range(4):
        assert 0 < int((module(x) == 0).sum()) < 1000
    module.eval()
    for _ in range(4):
        assert torch.equal(module(x), x)
    module.train()
    torch.manual_seed(3)
    first = module(x)
    torch.manual_seed(3)
    assert torch.equal(module(x), first)
    assert not torch.equal(module(x), first)


def test_errors_name_the_operator_in_each_call() -> None:
    module = affine()
    warm(module, batch(0))
    for _ in range(3):
        with pytest.raises(EnforceNotMet, match="position 0"):
            module(torch.ones(3, 5))
    torch.testing.assert_close(module(batch(1)), by_hand(module, batch(1)))


def test_calls_of_several_threads_give_right_values() -> None:
    module = affine()
    warm(module, batch(0, 64))
    failed = []

    def call(seed: int) -> None:
        x = batch(seed, 64)
        expected = by_hand(module, x)
        for _ in range(200):
            if not torch.allclose(module(x), expected, atol=1e-5):
                failed.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_an_input_that_is_not_a_tensor_is_refused_by_the_operator() -> None:
    workspace.FeedBlob("w", np.ones((4, 3), np.float32))
    workspace.FeedBlob("b", np.zeros(4, np.float32))
    net = core.Net("refusing")
    net.FC(["x", "w", "b"], "y")
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    with torch.no_grad():
        for _ in range(3):
            assert module(torch.ones(2, 3)).tolist() == [[3.0] * 4] * 2
        with pytest.raises(EnforceNotMet, match="FC"):
            module("text")


def test_reshaped_inputs_and_parameters_are_never_written() -> None:
    """A reshaped tensor has the memory of its input, which operators in place do not write."""
    workspace.FeedBlob("w", WEIGHT.numpy())
    net = core.Net("reshaped")
    net.Reshape("x", ["flat", "sizes"], shape=[-1])
    net.Relu("flat", "flat")
    net.Flatten("w", "v", axis=0)
    net.Relu("v", "v")
    net.Reshape("v", ["y", "former"], shape=[6, 4])
    module = caffe2.to_module(net, inputs=["x"], outputs=["flat", "y", "sizes"])
    x = batch(0)
    for _ in range(5):
        flat, y, sizes = module(x)
        torch.testing.assert_close(flat, batch(0).relu().flatten())
        torch.testing.assert_close(y, WEIGHT.relu().view(6, 4))
        assert sizes.tolist() == [3, 6]
        flat.zero_()
        y.zero_()
        sizes.zero_()
        torch.testing.assert_close(x, batch(0))
        torch.testing.assert_close(module.get_blob("w").detach(), WEIGHT)


def test_a_reshaped_result_that_is_read_later_keeps_its_value() -> None:
    net = core.Net("shared")
    net.Tanh("x", "h")
    net.Reshape("h", ["r", "sizes"], shape=[6, -1])
    net.Negative("h", "h")
    net.Reshape("h", ["r2", "sizes"], shape=[6, -1])
    net.Negative("r2", "r2")
    net.Add(["r", "r2"], "y")
    net.Sub(["h", "h"], "z")
    module = caffe2.to_module(net, inputs=["x"], outputs=["y", "z", "h"])
    for seed in range(5):
        x = batch(seed)
        y, z, h = module(x)
        torch.testing.assert_close(y, 2 * x.tanh().view(6, 3))
        assert not z.any()
        torch.testing.assert_close(h, -x.tanh())
