# SPDX-License-Identifier: Apache-2.0
"""Calls of a module that need gradients, again and again: values, gradients, what is noticed."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def drawn(seed: int, *sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def conv_net() -> Any:
    """Return a module of a convolution, pooling, FC and Dropout, all of them trainable."""
    sizes = {"cw": (4, 3, 3, 3), "cb": (4,), "w": (5, 4 * 4 * 4), "b": (5,)}
    for seed, (name, size) in enumerate(sizes.items()):
        workspace.FeedBlob(name, (drawn(seed, *size) / 3).numpy())
    net = core.Net("conv")
    net.Conv(["x", "cw", "cb"], "c", kernel=3, pad=1)
    net.Relu("c", "c")
    net.AveragePool("c", "p", kernel=2, stride=2)
    net.FC(["p", "w", "b"], "y")
    net.Softmax("y", "s")
    return caffe2.to_module(net, inputs=["x"], outputs=["y", "s"], trainable=True)


def by_hand(module: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    cw, cb, w, b = map(module.get_blob, ("cw", "cb", "w", "b"))
    c = torch.nn.functional.conv2d(x, cw, cb, padding=1).relu()
    p = torch.nn.functional.avg_pool2d(c, 2).flatten(1)
    y = torch.nn.functional.linear(p, w, b)
    return y, y.softmax(1)


def check(module: Any, x: torch.Tensor) -> None:
    leaves = [one for one in (x, *module.parameters()) if one.requires_grad]
    found, expected = module(x), by_hand(module, x)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    losses = [y.square().sum() + s.log().sum() for y, s in (found, expected)]
    actual, wanted = (torch.autograd.grad(loss, leaves) for loss in losses)
    torch.testing.assert_close(actual, wanted, rtol=1e-4, atol=1e-5)


def test_values_and_gradients_agree_with_torch() -> None:
    module = conv_net()
    for seed in range(5):
        check(module, drawn(seed, 2, 3, 8, 8))
    for seed in range(5):
        check(module, drawn(seed, 2, 3, 8, 8).requires_grad_())
        check(module, drawn(seed, 1 + seed % 3, 3, 8, 8))
        check(module, drawn(seed, 2, 8, 8, 3).permute(0, 3, 1, 2))
    for _ in range(3):
        module.get_blob("cw").requires_grad_(False)
        check(module, drawn(3, 2, 3, 8, 8))
        module.get_blob("cw").requires_grad_(True)
        check(module, drawn(3, 2, 3, 8, 8))


def test_training_steps_agree_with_torch() -> None:
    module = conv_net()
    other = copy.deepcopy(module)
    mine, theirs = (
        torch.optim.SGD(one.parameters(), 1e-3, momentum=0.9) for one in (module, other)
    )
    for seed in range(6):
        x = drawn(seed, 2, 3, 8, 8)
        for optimizer, output in ((mine, module(x)[0]), (theirs, by_hand(other, x)[0])):
            optimizer.zero_grad()
            output.square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(dict(module.named_parameters()), dict(other.named_parameters()))
    workspace.FeedBlob("x", x)
    workspace.RunNetOnce(module.net)
    torch.testing.assert_close(workspace.FetchTorch("y"), by_hand(module, x)[0].detach())


def test_one_tensor_for_two_inputs_is_told_from_two() -> None:
    net = core.Net("product")
    net.Mul(["a", "b"], "c")
    module = caffe2.to_module(net, inputs=["a", "b"], outputs=["c"])
    for _ in range(4):
        x, y = drawn(1, 3).requires_grad_(), drawn(2, 3).requires_grad_()
        torch.testing.assert_close(module(x, x), x * x)
        torch.testing.assert_close(module(x, y), x * y)
        torch.testing.assert_close(torch.autograd.grad(module(x, y).sum(), (x, y)), (y, x))


def test_second_derivatives_and_transforms_agree_with_torch() -> None:
    module = conv_net()
    x = drawn(0, 2, 3, 8, 8)
    for _ in range(4):
        check(module, x)
    found, expected = (
        torch.autograd.grad(
            torch.autograd.grad(f(x)[1].log().sum(), module.get_blob("w"), create_graph=True)[0]
            .square()
            .sum(),
            module.get_blob("b"),
        )[0]
        for f in (module, lambda x: by_hand(module, x))
    )
    torch.testing.assert_close(found, expected)
    parameters = {name: 2 * one.detach() for name, one in module.named_parameters()}

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        found = torch.func.functional_call(module, parameters, (x,))[0]
        return found.square().sum()

    gradients = torch.func.grad(loss)(parameters)
    assert gradients.keys() == parameters.keys()
    check(module, x)


def test_of_equal_maxima_each_has_the_whole_gradient() -> None:
    net = core.Net("pool")
    net.MaxPool("x", "y", kernel=3, stride=2, pad=1)
    net.Mul(["y", "y"], "z")
    module = caffe2.to_module(net, inputs=["x"], outputs=["z"])
    net.ConstantFill("z", "one", value=1.0)
    gradients = net.AddGradientOperators({"z": "one"})
    for seed in range(5):
        x = drawn(seed, 2, 3, 7, 6).round().requires_grad_()
        workspace.FeedBlob("x", x.detach())
        workspace.RunNetOnce(net)
        z = module(x)
        torch.testing.assert_close(z.detach(), workspace.FetchTorch("z"))
        (dx,) = torch.autograd.grad(z.sum(), x, create_graph=True)
        torch.testing.assert_close(dx.detach(), workspace.FetchTorch(str(gradients["x"])))
        assert dx.requires_grad
    torch.autograd.gradcheck(
        lambda x: module(x), drawn(9, 1, 1, 4, 4).double().requires_grad_(), check_batched_grad=True
    )
    transformed = torch.func.grad(lambda x: module(x).sum())(x.detach())
    torch.testing.assert_close(transformed, dx.detach())


def test_modes_of_torch_and_errors_leave_later_calls_right() -> None:
    module = conv_net()
    x = drawn(0, 2, 3, 8, 8)
    for _ in range(4):
        check(module, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.isfinite(module(x)[1]).all()
    with torch.device("meta"):
        torch.testing.assert_close(module(x), by_hand(module, x), rtol=1e-5, atol=1e-6)
    with pytest.raises(EnforceNotMet, match="'FC'"):
        module(drawn(0, 2, 3, 6, 6))
    check(module, x)


def test_random_numbers_are_drawn_at_each_call() -> None:
    net = core.Net("random")
    net.Dropout("x", ["y", "mask"], ratio=0.5, is_test=0)
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    x = torch.ones(64, requires_grad=True)
    for _ in range(3):
        module(x)
    torch.manual_seed(5)
    first, second = module(x), module(x)
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    np.testing.assert_array_equal(first.detach(), module(x).detach())
    np.testing.assert_array_equal(torch.autograd.grad(first.sum(), x)[0], first.detach())


ROWS, CHANNELS = (3, 4), (4,)
# fmt: off
OF_ALL_INPUTS = {
    "GeluGradient": ([ROWS, ROWS], ["y"], {}),
    "WeightedSigmoidCrossEntropyWithLogits": ([ROWS, ROWS, ROWS], ["y"], {}),
    "SpatialBN": ([ROWS, *[CHANNELS] * 6], ["y", "i3", "i4", "m", "r"],
                  {"is_test": 0, "num_batches": 2}),
}
# fmt: on


@pytest.mark.parametrize("op_type", OF_ALL_INPUTS)
def test_all_inputs_have_gradients_where_torchs_function_has_none_of_some(op_type: str) -> None:
    sizes, outputs, arguments = OF_ALL_INPUTS[op_type]
    names = [f"i{i}" for i in range(len(sizes))]
    net = core.Net("net")
    net.Proto().op.append(core.CreateOperator(op_type, names, outputs, **arguments))
    module = caffe2.to_module(net, inputs=names, outputs=["y"])
    inputs = [drawn(i, *size).double().requires_grad_() for i, size in enumerate(sizes)]
    if op_type == "SpatialBN":  # a sum of squares
        inputs[6] = (inputs[6].detach().abs() + 20).requires_grad_()
    assert torch.autograd.gradcheck(module, inputs)
