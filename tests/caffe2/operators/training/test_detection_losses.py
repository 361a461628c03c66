# SPDX-License-Identifier: Apache-2.0
"""Detectron's losses, which Caffe2 computes on CUDA only, against loops over elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bridge import caffe2
from bridge.caffe2 import core, workspace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")

_random = np.random.RandomState(3)


def values(*shape: int) -> np.ndarray:
    return (2 * _random.randn(*shape)).astype(np.float32)


def smooth_l1(x: float, beta: float) -> float:
    return 0.5 * x * x / beta if abs(x) < beta else abs(x) - 0.5 * beta


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def of_boxes(y_hat, y, inner, outer, beta=1.0, scale=1.0) -> float:
    each = zip(y_hat.flat, y.flat, inner.flat, outer.flat, strict=True)
    return scale / len(y) * sum(w * smooth_l1(v * (a - b), beta) for a, b, v, w in each)


def of_selected(y_hat, y, locations, normalizer, beta=1.0, scale=1.0) -> float:
    total = 0.0
    for row, (n, c, i, j) in zip(y, locations.astype(int), strict=True):
        total += sum(smooth_l1(y_hat[n, c + k, i, j] - row[k], beta) for k in range(4))
    return scale * total / max(float(normalizer), 1)


def of_sigmoids(x, labels, positives, gamma=1.0, alpha=0.25, scale=1.0, num_classes=80) -> float:
    total = 0.0
    for n, channel, i, j in np.ndindex(*x.shape):
        label = labels[n, channel // num_classes, i, j]
        p = sigmoid(x[n, channel, i, j])
        if label == channel % num_classes + 1:
            total -= alpha * (1 - p) ** gamma * math.log(p)
        elif label != -1:
            total -= (1 - alpha) * p**gamma * math.log(1 - p)
    return scale * total / max(float(positives), 1)


def of_softmaxes(x, labels, positives, gamma=1.0, alpha=0.25, scale=1.0, num_classes=81) -> float:
    total = 0.0
    for n, anchor, i, j in np.ndindex(*labels.shape):
        label = labels[n, anchor, i, j]
        scores = np.exp(x[n, anchor * num_classes : (anchor + 1) * num_classes, i, j])
        if label >= 0:
            p = scores[label] / scores.sum()
            total -= (alpha if label else 1 - alpha) * (1 - p) ** gamma * math.log(p)
    return scale * total / max(float(positives), 1)


def of_targets(x, targets, scale=1.0, normalize=1) -> float:
    total, count = 0.0, 0
    for one, target in zip(x.flat, targets.flat, strict=True):
        if target != -1:
            count += 1
            total -= math.log(sigmoid(one) if target else 1 - sigmoid(one))
    return scale * total / (max(count, 1e-5) if normalize else 1)


BOXES = [values(3, 4), values(3, 4), np.float32([[1, 0, 2, 1]] * 3), np.float32([[1, 3, 1, 0]] * 3)]
PLACES = np.float32([[0, 0, 1, 2], [1, 4, 0, 0], [1, 3, 2, 1]])
SELECTED = [values(2, 8, 3, 4), values(3, 4), PLACES, np.float32(5)]
GROUPS = values(2, 6, 2, 3)
LABELS = _random.randint(-1, 4, (2, 2, 2, 3)).astype(np.int32)
FOCAL = {"gamma": 2.0, "alpha": 0.3, "scale": 0.5, "num_classes": 3}
CASES: list[tuple[str, Any, list[np.ndarray], dict[str, Any]]] = [
    ("SmoothL1Loss", of_boxes, BOXES, {}),
    ("SmoothL1Loss", of_boxes, BOXES, {"beta": 2.5, "scale": 3.0}),
    ("SelectSmoothL1Loss", of_selected, SELECTED, {}),
    ("SelectSmoothL1Loss", of_selected, SELECTED, {"beta": 0.1, "scale": 0.25}),
    ("SelectSmoothL1Loss", of_selected, [*SELECTED[:3], np.float32(0)], {}),
    ("SigmoidFocalLoss", of_sigmoids, [GROUPS, LABELS, np.float32(3)], FOCAL),
    ("SigmoidFocalLoss", of_sigmoids, [GROUPS, LABELS, np.float32(0)], {"num_classes": 3}),
    ("SoftmaxFocalLoss", of_softmaxes, [GROUPS, LABELS % 3, np.float32(3)], FOCAL),
    ("SoftmaxFocalLoss", of_softmaxes, [GROUPS, -(LABELS % 2), np.float32(0)], FOCAL),
    ("SigmoidCrossEntropyLoss", of_targets, [GROUPS, LABELS[:, [0, 0, 1, 1, 0, 1]] % 2], {}),
    ("SigmoidCrossEntropyLoss", of_targets, [values(2, 3), np.int32([[-1, 0, 1]] * 2)], {}),
    (
        "SigmoidCrossEntropyLoss",
        of_targets,
        [values(2, 3), np.int32([[-1, 0, 1]] * 2)],
        {"scale": 2.0, "normalize": 0},
    ),
]


def net_of(op_type: str, inputs: list[np.ndarray], args: dict[str, Any], outputs: int) -> core.Net:
    net = core.Net("loss")
    names = [f"x{i}" for i in range(len(inputs))]
    for name, value in zip(names, inputs, strict=True):
        workspace.FeedBlob(name, value)
    made = [f"y{o}" for o in range(outputs)]
    net.Proto().op.extend([core.CreateOperator(op_type, names, made, **args)])
    return net


@pytest.mark.parametrize(("op_type", "function", "inputs", "args"), CASES)
def test_losses_and_gradients_agree_with_loops_over_elements(
    op_type, function, inputs, args
) -> None:
    net = net_of(op_type, inputs, args, 2 if op_type == "SoftmaxFocalLoss" else 1)
    module = caffe2.to_module(net, inputs=["x0"], outputs=["y0"])
    gradient = str(net.AddGradientOperators(["y0"])["x0"])
    workspace.CreateNet(net)
    for _ in range(3):  # the first, the recorded and the repeated run
        workspace.RunNet(net.Name())
    loss = workspace.FetchBlob("y0")
    assert loss.shape == ()
    assert loss == pytest.approx(function(*inputs, **args), rel=1e-5)
    found = workspace.FetchBlob(gradient)
    assert found.shape == inputs[0].shape
    x = torch.from_numpy(inputs[0].copy()).requires_grad_()
    module(x).backward()
    np.testing.assert_allclose(found, x.grad.numpy(), rtol=1e-4, atol=1e-6)
    for place in [tuple(_random.randint(size) for size in found.shape) for _ in range(6)]:
        sides = []
        for step in (0.001, -0.001):
            moved = inputs[0].astype(np.float64)
            moved[place] += step
            sides.append(function(moved, *inputs[1:], **args))
        assert found[place] == pytest.approx((sides[0] - sides[1]) / 0.002, rel=1e-2, abs=1e-3)


def test_softmax_of_groups_gives_probabilities() -> None:
    whole = np.exp(GROUPS.reshape(2, 2, 3, 2, 3))
    wanted = whole / whole.sum(2, keepdims=True)
    workspace.RunNetOnce(net_of("GroupSpatialSoftmax", [GROUPS], {"num_classes": 3}, 1))
    np.testing.assert_allclose(workspace.FetchBlob("y0"), wanted.reshape(GROUPS.shape), rtol=1e-5)
    inputs = [GROUPS, LABELS % 3, np.float32(3)]
    workspace.RunNetOnce(net_of("SoftmaxFocalLoss", inputs, FOCAL, 2))
    np.testing.assert_allclose(workspace.FetchBlob("y1"), wanted.reshape(-1), rtol=1e-5)


def test_the_gradient_of_the_softmax_of_groups_agrees_with_torch() -> None:
    net = net_of("GroupSpatialSoftmax", [GROUPS], {"num_classes": 3}, 1)
    workspace.FeedBlob("weight", values(*GROUPS.shape))
    net.Proto().op.extend([core.CreateOperator("Mul", ["y0", "weight"], ["z"])])
    gradient = str(net.AddGradientOperators(["z"])["x0"])
    workspace.RunNetOnce(net)
    x = torch.from_numpy(GROUPS.copy()).requires_grad_()
    p = torch.softmax(x.view(2, 2, 3, 2, 3), 2).view(x.shape)
    (p * torch.from_numpy(workspace.FetchBlob("weight"))).sum().backward()
    np.testing.assert_allclose(workspace.FetchBlob(gradient), x.grad.numpy(), atol=1e-6)


@pytest.mark.parametrize(
    ("op_type", "inputs", "args", "said"),
    [
        ("SmoothL1Loss", BOXES, {"beta": 0.0}, "beta is positive"),
        ("SmoothL1Loss", [BOXES[0], BOXES[1][:2], *BOXES[2:]], {}, "as many rows"),
        ("SelectSmoothL1Loss", [*SELECTED[:2], PLACES + 3, SELECTED[3]], {}, "of locations"),
        ("SoftmaxFocalLoss", [GROUPS, LABELS % 3 + 1, np.float32(1)], FOCAL, "labels are from"),
        ("SigmoidFocalLoss", [GROUPS, LABELS, np.float32(1)], {}, "groups of num_classes"),
        ("SigmoidCrossEntropyLoss", [GROUPS, LABELS], {}, "same shape"),
        ("SigmoidCrossEntropyLoss", [LABELS, LABELS], {"normalize": 2}, "takes float"),
        ("GroupSpatialSoftmax", [GROUPS], {"order": "NHWC"}, "order is NCHW"),
    ],
)
def test_inputs_and_arguments_that_do_not_fit_are_refused(op_type, inputs, args, said) -> None:
    net = net_of(op_type, inputs, args, 2 if op_type == "SoftmaxFocalLoss" else 1)
    with pytest.raises(RuntimeError, match=said):
        workspace.RunNetOnce(net)
