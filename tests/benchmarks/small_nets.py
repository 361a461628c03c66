# SPDX-License-Identifier: Apache-2.0
"""Nets made here: chains of 200 small operators, a training step, branches of several sizes.

A chain also comes as the torch calls that compute the same, each into the memory of its result.
"""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch

from bridge.caffe2 import core
from tests.benchmarks.harness import Timer, loop

LENGTH = 200
SIDE = 16


class Made(NamedTuple):
    """A net, what has to be fed to it, and which of that a module takes as its inputs.

    init: a net that makes other blobs, run once.
    """

    net: Any
    feeds: dict[str, Any]
    inputs: list[str]
    init: Any = None


class Link(NamedTuple):
    """An operator of a chain: its inputs after X, and the same as a torch call."""

    inputs: tuple[str, ...]
    by_hand: str


LINKS = {
    "Relu": Link((), "torch.clamp_min({x}, 0, out={y})"),
    "Add": Link(("other",), "torch.add({x}, other, out={y})"),
    "Mul": Link(("ones",), "torch.mul({x}, ones, out={y})"),
    "FC": Link(("w", "b"), "torch.addmm(b, {x}, transposed, out={y})"),
}
CHAINS = {
    "200 Relu of 16×16": ["Relu"],
    "200 Add of 16×16": ["Add"],
    "200 FC 16×16": ["FC"],
    "200 mixed of 16×16": ["Relu", "Add", "FC", "Mul"],
}


def feeds_of_chain() -> dict[str, Any]:
    """Return the blobs of a chain. The values stay of one magnitude however long it is."""
    random = np.random.RandomState(0)
    square = (SIDE, SIDE)
    return {
        "x0": random.rand(*square).astype(np.float32),
        "other": random.rand(*square).astype(np.float32),
        "ones": np.ones(square, np.float32),
        "w": np.eye(SIDE, dtype=np.float32)[random.permutation(SIDE)],
        "b": np.zeros(SIDE, np.float32),
    }


def chain(name: str, types: list[str]) -> Made:
    """Return a net of operators of these types by turns, each on the result of the one before."""
    net = core.Net(name)
    for i in range(LENGTH):
        op = types[i % len(types)]
        last = getattr(net, op)([f"x{i}", *LINKS[op].inputs], f"x{i + 1}")
    net.AddExternalOutput(last)
    return Made(net.Proto(), feeds_of_chain(), ["x0"])


def chain_by_hand(types: list[str]) -> Timer:
    """Time what the chain computes, written down as torch calls alone."""
    names: dict[str, Any] = {
        name: torch.from_numpy(value) for name, value in feeds_of_chain().items()
    }
    names |= {f"x{i + 1}": torch.empty(SIDE, SIDE) for i in range(LENGTH)}
    calls = [
        LINKS[types[i % len(types)]].by_hand.format(x=f"x{i}", y=f"x{i + 1}") for i in range(LENGTH)
    ]
    return loop("; ".join(calls), repeats=1, torch=torch, transposed=names["w"].t(), **names)


def training_step() -> Made:
    """Return one step of training of FC 256 -> 128 -> 10 by gradient descent: 15 operators."""
    random = np.random.RandomState(0)
    feeds: dict[str, Any] = {
        "x": random.randn(64, 256).astype(np.float32),
        "label": random.randint(0, 10, 64).astype(np.int32),
        "w1": (random.randn(128, 256) / 16).astype(np.float32),
        "b1": np.zeros(128, np.float32),
        "w2": (random.randn(10, 128) / 11).astype(np.float32),
        "b2": np.zeros(10, np.float32),
        "one": np.ones(1, np.float32),
        "iteration": np.zeros(1, np.int64),
    }
    net = core.Net("training step")
    net.FC(["x", "w1", "b1"], "h")
    net.Relu("h", "h")
    net.FC(["h", "w2", "b2"], "y")
    _, loss = net.SoftmaxWithLoss(["y", "label"], ["p", "loss"])
    gradients = net.AddGradientOperators([loss])
    net.Iter("iteration", "iteration")
    # So small that the weights, and with them the work, stay what they are.
    net.LearningRate("iteration", "rate", base_lr=-1e-5, policy="fixed")
    for name in ("w1", "b1", "w2", "b2"):
        net.WeightedSum([name, "one", gradients[name], "rate"], name)
    net.AddExternalOutput(loss)
    return Made(net.Proto(), feeds, ["x", "label"])


def lstm_step() -> Made:
    """Return one step of an LSTM of 32 units on 4 sequences: 5 operators."""
    random = np.random.RandomState(0)
    n, d = 4, 32
    feeds: dict[str, Any] = {name: random.randn(n, d).astype(np.float32) for name in ("x", "h")}
    feeds |= {name: random.randn(1, n, d).astype(np.float32) for name in ("hidden", "cell")}
    feeds |= {"lengths": np.full(n, 10, np.int32), "t": np.zeros(1, np.int32)}
    net = core.Net("LSTM step")
    for name in ("x", "h"):
        feeds[f"w_{name}"] = random.randn(4 * d, d).astype(np.float32) / 6
        feeds[f"b_{name}"] = np.zeros(4 * d, np.float32)
        net.FC([name, f"w_{name}", f"b_{name}"], f"gates_{name}")
    net.Sum(["gates_x", "gates_h"], "gates")
    net.Reshape("gates", ["shaped", "sizes"], shape=[1, n, 4 * d])
    hidden, _ = net.LSTMUnit(
        ["hidden", "cell", "shaped", "lengths", "t"], ["new_hidden", "new_cell"]
    )
    net.AddExternalOutput(hidden)
    return Made(net.Proto(), feeds, ["x", "h"])


def lstm_training() -> Made:
    """Return a step of training of an LSTM of 32 units, on 4 sequences of 20 time steps."""
    random = np.random.RandomState(0)
    steps, n, d = 20, 4, 32
    sizes = {"x": (steps, n, 4 * d), "h0": (1, n, d), "c0": (1, n, d), "w": (4 * d, d)}
    feeds: dict[str, Any] = {k: random.randn(*v).astype(np.float32) / 6 for k, v in sizes.items()}
    feeds |= {"b": np.zeros(4 * d, np.float32), "lengths": np.full(n, steps, np.int32)}
    feeds |= {"target": np.zeros((n, d), np.float32), "one": np.ones(1, np.float32)}
    feeds["rate"] = np.float32([-1e-5])
    forward, back = core.Net("forward"), core.Net("backward")
    forward.FC(["h_before", "w", "b"], "gates", axis=2)
    forward.Sum(["gates", "x_now"], "gates")
    unit = ["h_before", "c_before", "gates", "lengths", "timestep"]
    forward.LSTMUnit(unit, ["h", "c"])
    slopes = ["h_before_grad", "c_before_grad", "gates_grad"]
    back.LSTMUnitGradient([*unit, "h", "c", "h_grad", "c_grad"], slopes)
    back.FCGradient(["h_before", "w", "gates_grad"], ["w_grad", "b_grad", "more_grad"], axis=2)
    back.Sum(["h_before_grad", "more_grad"], "h_before_grad")
    for one in (forward, back):
        read = {name for op in one.Proto().op for name in op.input}
        read -= {name for op in one.Proto().op for name in op.output}
        one.Proto().external_input[:] = sorted(read)
    states = ["h_states", "h_states", "c_states", "c_states"]
    net = core.Net("LSTM training")
    net.RecurrentNetwork(
        ["x", "h0", "c0", "w", "b", "lengths"],
        ["h_all", "h_last", "c_all", "c_last", "scratch"],
        alias_src=states,
        alias_dst=["h_all", "h_last", "c_all", "c_last"],
        alias_offset=[1, -1, 1, -1],
        recurrent_states=["h_states", "c_states"],
        initial_recurrent_state_ids=[1, 2],
        link_internal=["h_before", "h", "c_before", "c", "x_now"],
        link_external=[*states, "x"],
        link_offset=[0, 1, 0, 1, 0],
        step_net=forward.Proto(),
        timestep="timestep",
        param=[3, 4],
        param_grads=["w_grad", "b_grad"],
        backward_link_internal=["h_grad", "h_before_grad", "c_grad", "c_before_grad", "gates_grad"],
        backward_link_external=[f"{name}_grad" for name in [*states, "x"]],
        backward_link_offset=[1, 0, 1, 0, 0],
        backward_step_net=back.Proto(),
        outputs_with_grads=[1],
        recompute_blobs_on_backward=[],
    )
    net.Reshape("h_last", ["y", "sizes"], shape=[-1, d])
    net.SquaredL2Distance(["y", "target"], "distance")
    loss = net.AveragedLoss("distance", "loss")
    gradients = net.AddGradientOperators([loss])
    for name in ("w", "b"):
        net.WeightedSum([name, "one", gradients[name], "rate"], name)
    net.AddExternalOutput(loss)
    return Made(net.Proto(), feeds, ["x"])


def int8_net(side: int) -> Made:
    """Return a net of bytes, as Mask R-CNN 2go's trunk: 4 blocks of 3 convolutions and a sum."""
    random = np.random.RandomState(0)
    net, init = core.Net("int8"), core.Net("int8 weights")
    scale, weight_scale = 0.05, 0.01
    convolutions = itertools.count()

    def weights(name: str, *sizes: int) -> list[Any]:
        octets = random.randint(0, 256, sizes).astype(np.uint8).tobytes()
        filled = {"shape": list(sizes), "values": octets}
        w = init.Int8GivenTensorFill(
            [], f"{name}_w", **filled, Y_scale=weight_scale, Y_zero_point=128
        )
        filled = {"shape": [sizes[0]], "values": random.randint(-100, 100, sizes[0]).tolist()}
        b = init.Int8GivenIntTensorFill([], f"{name}_b", **filled, Y_scale=scale * weight_scale)
        return [w, b]

    def convolution(x: Any, channels: int, op: str, kernel: int, **more: Any) -> Any:
        name, group = f"conv{next(convolutions)}", more.get("group", 1)
        sizes = (channels, kernel, kernel, more.pop("given") // group)
        more |= {"kernel": kernel, "pad": kernel // 2, "order": "NHWC"}
        zero = 0 if op.endswith("Relu") else 128
        made = [x, *weights(name, *sizes)]
        return getattr(net, op)(made, name, Y_scale=scale, Y_zero_point=zero, **more)

    y = net.Int8Quantize("x", "bytes", Y_scale=scale, Y_zero_point=0)
    y = convolution(y, 16, "Int8ConvRelu", 3, given=3, stride=2)
    for i in range(4):
        wide = convolution(y, 64, "Int8ConvRelu", 1, given=16)
        wide = convolution(wide, 64, "Int8ConvRelu", 3, given=64, group=64)
        narrow = convolution(wide, 16, "Int8Conv", 1, given=64)
        y = net.Int8SumRelu([y, narrow], f"sum{i}", Y_scale=scale, Y_zero_point=0)
    pooled = {"kernel": side // 2, "order": "NHWC", "Y_scale": scale, "Y_zero_point": 0}
    y = net.Int8AveragePool(y, "pool", **pooled)
    y = net.Int8FC([y, *weights("fc", 32, 16)], "fc", Y_scale=scale, Y_zero_point=128)
    net.AddExternalOutput(net.Int8Dequantize(y, "y"))
    feeds = {"x": random.rand(1, side, side, 3).astype(np.float32)}
    return Made(net.Proto(), feeds, ["x"], init.Proto())


def sparse_training() -> Made:
    """Return one step of SparseAdagrad of 5 weights, of which some are summed to a prediction."""
    net = core.Net("sparse training")
    picked = net.Gather(["w", "indices"], "picked")
    distance = net.SquaredL2Distance([net.ReduceFrontSum(picked, "sum"), "label"], "distance")
    loss = net.AveragedLoss(distance, "loss")
    gradient = net.AddGradientOperators([loss])["w"]
    net.Iter("iteration", "iteration")
    net.LearningRate("iteration", "rate", base_lr=-1e-5, policy="fixed")
    net.SparseAdagrad(["w", "h", gradient.indices, gradient.values, "rate"], ["w", "h"])
    feeds = {
        "w": np.zeros(5, np.float32),
        "h": np.full(5, 0.1, np.float32),
        "indices": np.arange(5),
        "label": np.array(1, np.float32),
        "iteration": np.zeros(1, np.int64),
    }
    return Made(net.Proto(), feeds, ["indices", "label"])


def layers(net: Any, feeds: dict[str, Any], x: Any, sizes: list[int], name: str) -> Any:
    """Add fully connected layers of these sizes, each with Relu; return the last result."""
    random = np.random.RandomState(0)
    for i, (before, after) in enumerate(pairwise(sizes)):
        weights = random.randn(after, before) / before**0.5
        feeds[f"{name}_w{i}"] = weights.astype(np.float32)
        feeds[f"{name}_b{i}"] = np.zeros(after, np.float32)
        x = net.FC([x, f"{name}_w{i}", f"{name}_b{i}"], f"{name}_fc{i}")
        x = net.Relu(x, f"{name}_{i}")
    return x


def branches(kind: str, count: int, rows: int, sizes: list[int]) -> Made:
    """Return a net of a type with independent branches of layers of these sizes."""
    net = core.Net(f"{count} branches {kind}")
    net.Proto().type, net.Proto().num_workers = kind, 2
    feeds: dict[str, Any] = {"x": np.ones((rows, sizes[0]), np.float32)}
    for i in range(count):
        layers(net, feeds, "x", sizes, f"branch{i}")
    return Made(net.Proto(), feeds, ["x"])


def recommendation(kind: str) -> Made:
    """Return a net as DLRM's: layers, 26 sums of rows, their products, and layers on these."""
    random = np.random.RandomState(0)
    rows, tables, width = 128, 26, 16
    net = core.Net(f"recommendation {kind}")
    net.Proto().type, net.Proto().num_workers = kind, 2
    feeds: dict[str, Any] = {"x": random.rand(rows, 13).astype(np.float32)}
    dense = layers(net, feeds, "x", [13, 512, 256, 64, width], "bottom")
    found = [dense]
    for i in range(tables):
        feeds[f"table{i}"] = random.randn(1000, width).astype(np.float32)
        feeds[f"lengths{i}"] = lengths = random.randint(1, 10, rows).astype(np.int32)
        feeds[f"indices{i}"] = random.randint(0, 1000, lengths.sum()).astype(np.int64)
        looked_up = [f"table{i}", f"indices{i}", f"lengths{i}"]
        found.append(net.SparseLengthsSum(looked_up, f"sum{i}"))
    stacked, _ = net.Concat(found, ["stacked", "stacked_split"], axis=1, add_axis=1)
    products = net.Flatten(net.BatchMatMul([stacked, stacked], "products", trans_b=1), "flat")
    below = [i * (tables + 1) + j for i in range(tables + 1) for j in range(i)]
    feeds["below"] = np.array(below, np.int32)
    met, _ = net.Concat(
        [dense, net.BatchGather([products, "below"], "picked")], ["met", "split"], axis=1
    )
    net.Sigmoid(layers(net, feeds, met, [width + len(below), 512, 256, 1], "top"), "odds")
    return Made(net.Proto(), feeds, ["x"])
