# SPDX-License-Identifier: Apache-2.0
"""The original's data_parallel_model, out of an old PyTorch, with several processes.

It runs if the environment variable CAFFE2_LEGACY is set; see `tests.helpers.old_pytorch`.
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import caffe2
from bridge.caffe2 import brew, model_helper, optimizer, workspace
from tests.caffe2.operators.distributed.test_collectives_training import BATCH, STEPS, a_batch
from tests.helpers.isolate import isolated
from tests.helpers.old_pytorch import REAL
from tests.helpers.operators import run_operator
from tests.helpers.processes import trains_as_one_process

pytestmark = pytest.mark.skipif(not REAL, reason="CAFFE2_LEGACY does not name an old PyTorch")


def forward(model: Any, loss_scale: float) -> list[Any]:
    brew.conv(model, "data", "conv", 1, 4, kernel=3, pad=1)
    brew.relu(model, "conv", "conv")
    brew.max_pool(model, "conv", "pool", kernel=2, stride=2)
    brew.fc(model, "pool", "scores", 4 * 6 * 6, 2)
    _, loss = model.net.SoftmaxWithLoss(["scores", "label"], ["prob", "loss"])
    return [model.net.Scale(loss, loss, scale=loss_scale)]


def train(rank: int, n: int, folder: Path) -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # it is old
    caffe2.install(legacy=REAL)
    rendezvous = None
    if n > 1:
        run_operator("FileStoreHandlerCreate", [], ["store"], path=str(folder / "store"))
        rendezvous = {"kv_handler": "store", "num_shards": n, "shard_id": rank, "engine": "GLOO"}
    model = model_helper.ModelHelper(name=f"model{n}", arg_scope={"order": "NCHW"})
    parallel: Any = importlib.import_module("caffe2.python.data_parallel_model")
    parallel.Parallelize_CPU(
        model,
        lambda _: None,
        forward,
        optimizer_builder_fun=lambda one: optimizer.build_sgd(one, 0.1, momentum=0.9),
        devices=[0],
        rendezvous=rendezvous,
    )
    for op in model.param_init_net.Proto().op:
        op.device_option.random_seed = 7 + rank  # only what process 0 draws is used
    part = slice(rank * BATCH // n, (rank + 1) * BATCH // n)
    for step in range(STEPS):
        for name, values in zip(("data", "label"), a_batch(step), strict=True):
            workspace.FeedBlob(f"cpu_0/{name}", values[part])
        if step == 0:
            workspace.RunNetOnce(model.param_init_net)
            workspace.CreateNet(model.net)
        workspace.RunNet(model.net)
    weights = {str(name): workspace.FetchBlob(name) for name in model.GetParams()}
    np.savez(folder / f"weights-{rank}.npz", **weights)


@isolated
def test_two_and_four_processes_train_to_the_weights_of_one(tmp_path: Path) -> None:
    trains_as_one_process(train, tmp_path, 4)
