# SPDX-License-Identifier: Apache-2.0
"""Random nets compute the same as nets of every type and as modules: see `random_nets`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.random_nets import RandomNet, random_net

pytestmark = pytest.mark.usefixtures("fresh_workspace")

SEEDS = range(12)
PARALLEL = ("dag", "async_scheduling", "parallel")


def feed(net: RandomNet) -> None:
    for name, value in net.feeds.items():
        workspace.FeedBlob(name, value)


def fetched(names: Iterable[str]) -> dict[str, Any]:
    return {name: np.array(workspace.FetchBlob(name)) for name in names}


def runs_of(net: RandomNet, kind: str, outputs: list[str], runs: int) -> list[dict[str, Any]]:
    """Return what a net of a type writes, on the same blobs each time."""
    found = []
    workspace.ResetWorkspace()
    feed(net)
    workspace.CreateNet(net.proto(kind, kind, outputs))
    for _ in range(runs):
        feed(net)
        workspace.RunNet(kind)
        found.append(fetched(outputs))
    return found


def check_close(actual: dict[str, Any], expected: dict[str, Any], rtol: float = 1e-5) -> None:
    for name, value in expected.items():
        assert (actual[name].dtype, actual[name].shape) == (value.dtype, value.shape), name
        np.testing.assert_allclose(actual[name], value, rtol=rtol, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("seed", SEEDS)
def test_nets_of_every_type_compute_the_same(seed: int) -> None:
    net = random_net(seed)
    names = list(net.blobs)
    first, *others = runs_of(net, "simple", names, 4)
    for kind in PARALLEL:
        others += runs_of(net, kind, names, 3)
    for other in others:
        for name, value in first.items():
            np.testing.assert_array_equal(other[name], value, err_msg=name)


@pytest.mark.parametrize("seed", SEEDS)
def test_compiled_nets_compute_what_simple_ones_do(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The graph as it is: what is compiled takes seconds, and is torch's affair.
    target = "bridge.caffe2.execution.compiled._compiled_graph"
    monkeypatch.setattr(target, lambda graph, tensors: graph)
    net = random_net(seed)
    names = list(net.blobs)
    expected = runs_of(net, "simple", names, 1)[0]
    for outputs in (names, names[seed % 3 :: 3]):
        for found in runs_of(net, "compiled", outputs, 4):
            check_close(found, {name: expected[name] for name in outputs}, 1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_modules_compute_what_their_nets_do(seed: int) -> None:
    net = random_net(seed)
    names = list(net.blobs)
    expected = runs_of(net, "simple", names, 1)[0]
    workspace.ResetWorkspace()
    feed(net)
    inputs = [torch.from_numpy(net.feeds[name].copy()) for name in ("x", "z")]
    for trainable in (False, True):
        module = caffe2.to_module(
            net.proto("net"), inputs=["x", "z"], outputs=names, trainable=trainable
        )
        for mode in (torch.no_grad, torch.no_grad, torch.no_grad, torch.enable_grad):
            with mode():
                found = module(*inputs)
            check_close(
                dict(zip(names, (one.detach().numpy() for one in found), strict=True)), expected
            )
        exported = torch.export.export(module, tuple(inputs)).module()(*inputs)
        check_close(
            dict(zip(names, (one.detach().numpy() for one in exported), strict=True)), expected
        )
    for name, value in fetched(net.feeds).items():
        np.testing.assert_array_equal(value, net.feeds[name])


@pytest.mark.parametrize("seed", range(100, 130))
def test_gradients_of_nets_are_those_of_their_modules(seed: int) -> None:
    net = random_net(seed, 16, overwrites=False)
    y = [n for n, kind in net.blobs.items() if kind.dtype == "float32" and n not in net.feeds][-1]
    training = core.Net(net.proto("training"))
    training.ConstantFill(y, "one", value=1.0)
    feed(net)
    try:
        gradients = training.AddGradientOperators({y: "one"})
        workspace.RunNetOnce(training)
    except EnforceNotMet:
        # An operator has no gradient, or, as in Caffe2, that of Split lacks the parts that nobody
        # uses, and does not fit.
        return
    results = {
        name: workspace.FetchBlob(gradients[name]) for name in net.feeds if name in gradients
    }
    feed(net)
    module = caffe2.to_module(net.proto("net"), inputs=["x", "z"], outputs=[y], trainable=True)
    tensors = {n: torch.from_numpy(net.feeds[n].copy()).requires_grad_() for n in ("x", "z")}
    found = module(*tensors.values())
    if found.requires_grad:
        found.sum().backward()
    tensors |= dict(module.named_parameters())
    written = {name for op in net.net.Proto().op for name in op.output}
    for name in tensors.keys() & results.keys() - written:
        expected = results[name]
        actual = tensors[name].grad
        if expected.shape == tensors[name].shape:  # unless that of Split lacks parts
            actual = np.zeros_like(expected) if actual is None else actual.numpy()
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5, err_msg=name)


FAILURES = [
    ("Gather", ["x0", "far"], {}),
    ("FC", ["x0", "odd", "b"], {}),
    ("Reshape", ["x0"], {"shape": [5, 7]}),
    ("Concat", ["x0", "odd"], {"axis": 0}),
]


@pytest.mark.parametrize("kind", ["simple", "compiled", *PARALLEL])
@pytest.mark.parametrize("seed", range(8))
def test_an_error_in_the_middle_leaves_later_blobs_as_they_were(
    seed: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "bridge.caffe2.execution.compiled._compiled_graph"
    monkeypatch.setattr(target, lambda graph, tensors: graph)
    random = np.random.RandomState(seed)
    net = random_net(seed)
    more = {
        "x0": np.ones((4, 6), np.float32),
        "far": np.array([99], np.int32),
        "odd": np.ones((3, 5), np.float32),
    }
    op_type, inputs, arguments = FAILURES[seed % len(FAILURES)]
    message = net.proto("failing", kind)
    operators = list(message.op)
    position = random.randint(len(operators))
    there = [*net.feeds, *(name for one in operators[:position] for name in one.output)]
    outputs = [there[random.randint(len(there))], "second"]
    count = 1 if op_type in ("Gather", "FC") else 2
    failing = core.CreateOperator(op_type, inputs, outputs[:count], **arguments)
    before = caffe2_pb2.NetDef(op=operators[:position])
    del message.op[:], message.external_input[:], message.external_output[:]
    message.op.extend([*operators[:position], failing, *operators[position:]])

    net.feeds.update(more)
    feed(net)
    if position:
        workspace.RunNetOnce(before)
    expected = fetched(net.feeds)
    workspace.ResetWorkspace()
    feed(net)
    workspace.CreateNet(message)
    for _ in range(3):
        feed(net)
        with pytest.raises(EnforceNotMet, match=rf"'{op_type}'.* position {position} of net"):
            workspace.RunNet("failing")
        if kind in ("simple", "compiled"):
            check_close(fetched(net.feeds), expected, 1e-4)
