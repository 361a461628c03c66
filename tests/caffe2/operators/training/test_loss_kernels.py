# SPDX-License-Identifier: Apache-2.0
"""Losses of rows by kernels: the same bits in every run, and wrong labels change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")

_random = np.random.RandomState(5)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64))
    return (e / e.sum(1, keepdims=True)).astype(np.float32)


def create(op_type: str, feeds: dict[str, Any], outputs: list[str], **args: Any) -> str:
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)
    net = core.Net("loss")
    net.Proto().op.append(core.CreateOperator(op_type, list(feeds), outputs, **args))
    workspace.CreateNet(net, input_blobs=list(feeds))
    return net.Name()


def runs(op_type: str, feeds: dict[str, Any], outputs: list[str], **args: Any) -> list[np.ndarray]:
    """Run a net four times, and return what each output is; it has the same bits each time."""
    net = create(op_type, feeds, outputs, **args)
    found: list[list[np.ndarray]] = []
    for _ in range(4):
        workspace.RunNet(net)
        found.append([workspace.FetchBlob(name) for name in outputs])
    for later in found[1:]:
        for one, other in zip(found[0], later, strict=True):
            assert one.tobytes() == other.tobytes()
    return found[0]


X = _random.randn(40, 12).astype(np.float32)
LABELS = _random.randint(0, 12, 40).astype(np.int32)
WEIGHTS = _random.rand(40).astype(np.float32)


@pytest.mark.parametrize("top", [1, 3, 12])
def test_accuracy_counts_labels_among_the_first_ranks(top: int) -> None:
    x = X.copy()
    x[3] = 0  # of equal elements the first ranks first
    ranks = np.argsort(-x, axis=1, kind="stable")[:, :top]
    (found,) = runs("Accuracy", {"x": x, "label": LABELS}, ["y"], top_k=top)
    assert found == np.float32((ranks == LABELS[:, None]).any(1).mean())


@pytest.mark.parametrize("width", [12, 40])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by_batch", [0, 1])
def test_softmax_with_loss_and_its_gradient_agree_with_numpy(
    width: int, weighted: bool, by_batch: int
) -> None:
    x = _random.randn(40, width).astype(np.float32)
    feeds: dict[str, Any] = {"x": x, "label": LABELS}
    if weighted:
        feeds["weight"] = WEIGHTS
    args = {"scale": 0.5, "average_by_batch_size": by_batch}
    p, loss = runs("SoftmaxWithLoss", feeds, ["p", "loss"], **args)
    weights = WEIGHTS.astype(np.float64) if weighted else np.ones(40)
    count = 40 if by_batch else weights.sum()
    wanted = softmax(x)
    np.testing.assert_allclose(p, wanted, rtol=1e-5)
    terms = -np.log(wanted[np.arange(40), LABELS]) * weights
    np.testing.assert_allclose(loss, 0.5 * terms.sum() / count, rtol=1e-5)
    feeds |= {"p": wanted, "dloss": np.float32(3)}
    (dx,) = runs("SoftmaxWithLossGradient", feeds, ["dx"], **args)
    one_hot = np.eye(width)[LABELS]
    np.testing.assert_allclose(
        dx, (wanted - one_hot) * weights[:, None] * 1.5 / count, rtol=1e-5, atol=1e-9
    )


def test_probabilities_of_zero_have_finite_losses() -> None:
    feeds = {"x": np.float32([[0, 1], [0.5, 0.5]]), "label": np.int32([0, 1])}
    (found,) = runs("LabelCrossEntropy", feeds, ["y"])
    np.testing.assert_allclose(found, -np.log([1e-20, 0.5]), rtol=1e-6)
    feeds = {"x": np.float32([[-200, 0]]), "label": np.int32([0])}
    _, loss = runs("SoftmaxWithLoss", feeds, ["p", "loss"])
    assert loss == 200, "its logarithm is exact"


@pytest.mark.parametrize("op_type", ["Accuracy", "LabelCrossEntropy", "SoftmaxWithLoss"])
@pytest.mark.parametrize("wrong", [-1, 12])
def test_wrong_labels_are_refused_in_any_run(op_type: str, wrong: int) -> None:
    outputs = ["p", "y"] if op_type == "SoftmaxWithLoss" else ["y"]
    net = create(op_type, {"x": softmax(X), "label": LABELS}, outputs)
    for _ in range(3):
        workspace.RunNet(net)
    before = [workspace.FetchBlob(name) for name in outputs]
    workspace.FeedBlob("x", softmax(-X))
    labels = LABELS.copy()
    labels[-1] = wrong
    workspace.FeedBlob("label", labels)
    with pytest.raises(RuntimeError, match="labels are from 0 to below 12"):
        workspace.RunNet(net)
    for name, value in zip(outputs, before, strict=True):
        assert workspace.FetchBlob(name).tobytes() == value.tobytes()
