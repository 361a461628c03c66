# SPDX-License-Identifier: Apache-2.0
"""A convolutional net, trained by several processes to the weights of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import brew, core, model_helper, workspace
from tests.helpers.isolate import isolated
from tests.helpers.processes import KILLED, killed, meet, together, trains_as_one_process

BATCH, STEPS = 8, 6


def a_batch(step: int) -> tuple[Any, Any]:
    random = np.random.default_rng(step)
    images = random.normal(size=(BATCH, 1, 12, 12)).astype(np.float32)
    return images, (images.mean((1, 2, 3)) > 0).astype(np.int32)


def model(rank: int, n: int) -> Any:
    """A net as those of the model zoo: convolution, pooling, two layers, softmax; momentum."""
    arguments = {"order": "NCHW"}
    helper = model_helper.ModelHelper(name="small", arg_scope=arguments)
    brew.conv(helper, "data", "conv", 1, 4, kernel=3, pad=1)
    brew.relu(helper, "conv", "conv")
    brew.max_pool(helper, "conv", "pool", kernel=2, stride=2)
    brew.fc(helper, "pool", "hidden", 4 * 6 * 6, 16)
    brew.relu(helper, "hidden", "hidden")
    brew.fc(helper, "hidden", "scores", 16, 2)
    _, loss = helper.net.SoftmaxWithLoss(["scores", "label"], ["prob", "loss"])
    # Each process has the mean over its part of the batch.
    helper.net.Scale(loss, loss, scale=1.0 / n)
    helper.AddGradientOperators([loss])
    helper.param_init_net.ConstantFill([], "rate", shape=[1], value=0.1)
    for parameter in helper.params:
        gradient = helper.param_to_grad[parameter]
        if n > 1:
            helper.param_init_net.Broadcast(["world", parameter], [parameter], engine="GLOO")
            helper.net.Allreduce(["world", gradient], [gradient], engine="GLOO")
        moment = helper.param_init_net.ConstantFill([parameter], f"{parameter}_moment", value=0.0)
        helper.net.MomentumSGDUpdate(
            [gradient, moment, "rate", parameter], [gradient, moment, parameter], momentum=0.9
        )
    return helper


def train(rank: int, n: int, folder: Path, dies_at: int = -1) -> None:
    if n > 1:
        meet(rank, n, folder)
    np.random.seed(rank)
    core_seed = {"random_seed": 7 + rank}  # only what process 0 draws is used
    helper = model(rank, n)
    for op in helper.param_init_net.Proto().op:
        op.device_option.random_seed = core_seed["random_seed"]
    workspace.RunNetOnce(helper.param_init_net)
    images, labels = a_batch(0)
    part = slice(rank * BATCH // n, (rank + 1) * BATCH // n)
    workspace.FeedBlob("data", images[part])
    workspace.FeedBlob("label", labels[part])
    workspace.CreateNet(helper.net)
    for step in range(STEPS):
        images, labels = a_batch(step)
        workspace.FeedBlob("data", images[part])
        workspace.FeedBlob("label", labels[part])
        if step == dies_at and rank == n - 1:
            killed()
        if step == dies_at:
            with pytest.raises(c10.EnforceNotMet, match="Another process has ended"):
                workspace.RunNet(helper.net)
            return
        workspace.RunNet(helper.net)
    weights = {str(name): workspace.FetchBlob(name) for name in helper.params}
    np.savez(folder / f"weights-{rank}.npz", **weights)


@isolated
def test_two_and_four_processes_train_to_the_weights_of_one(tmp_path: Path) -> None:
    trains_as_one_process(train, tmp_path, 6)


@isolated
def test_a_process_that_dies_while_training_ends_the_net_of_all_others(tmp_path: Path) -> None:
    assert together(3, train, tmp_path, 2) == [0, 0, KILLED]


def test_shapes_are_inferred_without_the_other_processes() -> None:
    net = core.Net("one")
    net.Allreduce(["world", "x"], ["x"])
    net.Broadcast(["world", "y"], ["y"])
    net.Allgather(["world", "y"], ["z"])
    shapes, _ = workspace.InferShapesAndTypes([net], {"x": [2, 3], "y": [3]})
    assert shapes == {"x": [2, 3], "y": [3]}  # as Caffe2's
