# SPDX-License-Identifier: Apache-2.0
"""The gradients that nets compute are those that torch computes for the same functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn import functional

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

Functions = dict[str, Callable[..., torch.Tensor]]


def check(net: core.Net, loss: str, wanted: torch.Tensor, blobs: dict[str, torch.Tensor]) -> None:
    """Run the net with its gradients on the values of `blobs`, which `wanted` was computed from."""
    gradients = net.AddGradientOperators([loss])
    for name, value in blobs.items():
        workspace.FeedBlob(name, value.detach().numpy())
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(workspace.FetchBlob(loss), wanted.detach(), rtol=1e-5, atol=1e-6)
    wanted.sum().backward()
    for name, value in blobs.items():
        if value.requires_grad:
            found = workspace.FetchBlob(gradients[name])
            np.testing.assert_allclose(found, value.grad, rtol=2e-5, atol=2e-6, err_msg=name)


def leaf(*sizes: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed + 10 * len(sizes))
    return (torch.rand(*sizes, generator=random) * (high - low) + low).requires_grad_()


UNARY: Functions = {
    "Abs": torch.abs,
    "Cube": lambda x: x**3,
    "Elu": functional.elu,
    "Exp": torch.exp,
    "Log": torch.log,
    "Negative": torch.neg,
    "Relu": torch.relu,
    "Rsqrt": torch.rsqrt,
    "Sigmoid": torch.sigmoid,
    "Sin": torch.sin,
    "Softsign": functional.softsign,
    "Sqr": torch.square,
    "Sqrt": torch.sqrt,
    "Tanh": torch.tanh,
}


@pytest.mark.parametrize("op_type", sorted(UNARY))
def test_gradient_of_a_function_is_added_to_another_in_both_orders(op_type: str) -> None:
    """Its gradient is one of two that are added up, as the first and as the second."""
    x = leaf(3, 4, low=0.5, high=2.0)
    for order in (False, True):
        net = core.Net("unary")
        branches = [
            lambda net=net: getattr(net, op_type)("x", "y"),
            lambda net=net: net.Cos("x", "z"),
        ]
        for add in reversed(branches) if order else branches:
            add()
        net.Mul(["y", "z"], "product")
        net.SumElements("product", "loss")
        x.grad = None
        check(net, "loss", (UNARY[op_type](x) * torch.cos(x)).sum(), {"x": x})


BINARY: Functions = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div}


@pytest.mark.parametrize("op_type", sorted(BINARY))
@pytest.mark.parametrize("sizes", [(3, 4), (4,), (1,)])
def test_gradients_of_binary_functions_agree_with_torch(
    op_type: str, sizes: tuple[int, ...]
) -> None:
    a, b = leaf(3, 4), leaf(*sizes, seed=1, low=0.5, high=2.0)
    net = core.Net("binary")
    getattr(net, op_type)(["a", "b"], "c", broadcast=1)
    net.SumElements("c", "loss")
    check(net, "loss", BINARY[op_type](a, b).sum(), {"a": a, "b": b})


@pytest.mark.parametrize("op_type", sorted(BINARY))
def test_gradients_of_binary_functions_of_one_blob_agree_with_torch(op_type: str) -> None:
    x = leaf(3, 4, low=0.5, high=2.0)
    net = core.Net("same")
    getattr(net, op_type)(["x", "x"], "y")
    net.Mul(["y", "x"], "z")
    net.SumElements("z", "loss")
    check(net, "loss", (BINARY[op_type](x, x) * x).sum(), {"x": x})


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("op_type", ["MatMul", "BatchMatMul"])
def test_gradients_of_products_agree_with_torch(op_type: str, trans_a: int, trans_b: int) -> None:
    batch = (5,) if op_type == "BatchMatMul" else ()
    a = leaf(*batch, *((3, 2) if trans_a else (2, 3)))
    b = leaf(*batch, *((4, 3) if trans_b else (3, 4)), seed=1)
    net = core.Net("product")
    getattr(net, op_type)(["a", "b"], "c", trans_a=trans_a, trans_b=trans_b)
    net.Sigmoid("c", "d")
    net.SumElements("d", "loss")
    product = (a.mT if trans_a else a) @ (b.mT if trans_b else b)
    check(net, "loss", torch.sigmoid(product).sum(), {"a": a, "b": b})


def test_gradient_of_a_power_with_a_blob_as_exponent_agrees_with_torch() -> None:
    x, e = leaf(3, 4, low=0.5, high=2.0), leaf(3, 4, seed=1)
    net = core.Net("power")
    net.Pow(["x", "e"], "y")
    net.SumElements("y", "loss")
    check(net, "loss", (x**e).sum(), {"x": x, "e": e})


@pytest.mark.parametrize("in_place", [False, True])
def test_gradient_of_a_power_with_an_argument_agrees_with_torch(in_place: bool) -> None:
    x = leaf(3, 4, low=0.5, high=2.0)
    net = core.Net("power")
    net.Copy("x", "y")
    net.Pow("y", "y" if in_place else "z", exponent=1.5)
    net.SumElements("y" if in_place else "z", "loss")
    check(net, "loss", (x**1.5).sum(), {"x": x})


def test_gradients_of_shared_parameters_and_a_shortcut_agree_with_torch() -> None:
    x, w, b = leaf(5, 4), leaf(4, 4, seed=1), leaf(4, seed=2)
    net = core.Net("shared")
    net.FC(["x", "w", "b"], "h")
    net.Relu("h", "h")
    net.FC(["h", "w", "b"], "g")
    net.Sum(["g", "h", "x"], "s")
    net.Tanh("s", "s")
    net.AveragedLoss("s", "loss")
    h = torch.relu(functional.linear(x, w, b))
    s = torch.tanh(functional.linear(h, w, b) + h + x)
    check(net, "loss", s.mean(), {"x": x, "w": w, "b": b})


def test_gradients_of_a_classifier_of_images_agree_with_torch() -> None:
    x, w, b = leaf(2, 3, 8, 8), leaf(4, 3, 3, 3, seed=1), leaf(4, seed=2)
    fc_w, fc_b = leaf(5, 4 * 4 * 4, seed=3), leaf(5, seed=4)
    labels = torch.tensor([1, 4], dtype=torch.int32)
    net = core.Net("images")
    net.Conv(["x", "w", "b"], "conv", kernel=3, pad=1)
    net.Relu("conv", "conv")
    net.MaxPool("conv", "pool", kernel=2, stride=2)
    net.FC(["pool", "fc_w", "fc_b"], "scores")
    net.SoftmaxWithLoss(["scores", "labels"], ["softmax", "loss"])
    pool = functional.max_pool2d(torch.relu(functional.conv2d(x, w, b, padding=1)), 2)
    scores = functional.linear(pool.flatten(1), fc_w, fc_b)
    blobs = {"x": x, "w": w, "b": b, "fc_w": fc_w, "fc_b": fc_b, "labels": labels}
    check(net, "loss", functional.cross_entropy(scores, labels.long()), blobs)


def test_gradients_of_split_concat_reshape_transpose_agree_with_torch() -> None:
    x = leaf(4, 6)
    net = core.Net("moves")
    net.Split("x", ["a", "b"], axis=1)
    net.Transpose("a", "at", axes=[1, 0])
    net.Reshape("at", ["ar", "_old"], shape=[4, 3])
    net.Concat(["b", "ar", "b"], ["c", "_dims"], axis=1)
    net.Sqr("c", "d")
    net.SumElements("d", "loss")
    a, b = x.split(3, 1)
    check(net, "loss", torch.cat([b, a.T.reshape(4, 3), b], 1).square().sum(), {"x": x})


def test_sparse_gradients_of_rows_that_come_again_agree_with_torch() -> None:
    table = leaf(6, 3)
    ids = torch.tensor([5, 0, 5, 2])
    lengths = torch.tensor([1, 0, 3], dtype=torch.int32)
    net = core.Net("sparse")
    net.Gather(["table", "ids"], "rows")
    net.SparseLengthsSum(["table", "ids", "lengths"], "sums")
    net.SumElements("rows", "first")
    net.Sqr("sums", "squares")
    net.SumElements("squares", "second")
    net.Sum(["first", "second"], "loss")
    gradients = net.AddGradientOperators(["loss"])
    for name, value in {"table": table.detach(), "ids": ids, "lengths": lengths}.items():
        workspace.FeedBlob(name, value.numpy())
    workspace.RunNetOnce(net)
    sums = torch.stack([table[5], torch.zeros(3), table[0] + table[5] + table[2]])
    (table[ids].sum() + sums.square().sum()).backward()
    found = gradients["table"]
    assert isinstance(found, core.GradientSlice)
    dense = torch.zeros(6, 3).index_add_(
        0,
        torch.from_numpy(workspace.FetchBlob(found.indices)),
        torch.from_numpy(workspace.FetchBlob(found.values)),
    )
    np.testing.assert_allclose(dense, table.grad, rtol=1e-5)


def test_a_given_gradient_is_passed_on() -> None:
    x = leaf(3)
    net = core.Net("given")
    net.Exp("x", "y")
    net.AddExternalInput("from_outside")
    gradients = net.AddGradientOperators({"y": "from_outside"})
    workspace.FeedBlob("x", x.detach().numpy())
    workspace.FeedBlob("from_outside", np.array([1, 2, 3], np.float32))
    workspace.RunNetOnce(net)
    wanted = torch.exp(x.detach()) * torch.tensor([1, 2, 3])
    np.testing.assert_allclose(workspace.FetchBlob(gradients["x"]), wanted, rtol=1e-6)


def test_stop_negate_and_zero_end_gradients() -> None:
    x = leaf(3)
    net = core.Net("ends")
    net.Copy("x", "a")
    net.StopGradient("a", "a")
    net.NegateGradient("x", "b")
    net.Copy("x", "c")
    net.Sum(["a", "b", "c"], "y")
    net.Copy("z", "unused")
    net.ZeroGradient("unused", [])
    net.SumElements("y", "loss")
    gradients = net.AddGradientOperators(["loss"])
    workspace.FeedBlob("x", x.detach().numpy())
    workspace.FeedBlob("z", np.ones(2, np.float32))
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob(gradients["x"]), [0, 0, 0])
    np.testing.assert_array_equal(workspace.FetchBlob(gradients["z"]), [0, 0])
    assert "a" not in gradients
