# SPDX-License-Identifier: Apache-2.0
"""The original's data_parallel_model, out of an old PyTorch, with several processes.

`OLD_PYTORCH` is the path of one that has Caffe2, such as the wheel of PyTorch 1.8.1.
"""

from __future__ import annotations

import importlib
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import caffe2
from bridge.caffe2 import brew, model_helper, optimizer, workspace
from tests.caffe2.operators.distributed.test_collectives_training import BATCH, STEPS, a_batch
from tests.helpers.isolate import isolated
from tests.helpers.operators import run_operator
from tests.helpers.processes import together

OLD_PYTORCH = os.environ.get("OLD_PYTORCH", "")

pytestmark = pytest.mark.skipif(not OLD_PYTORCH, reason="OLD_PYTORCH names no old PyTorch")


def forward(model: Any, loss_scale: float) -> list[Any]:
    brew.conv(model, "data", "conv", 1, 4, kernel=3, pad=1)
    brew.relu(model, "conv", "conv")
    brew.max_pool(model, "conv", "pool", kernel=2, stride=2)
    brew.fc(model, "pool", "scores", 4 * 6 * 6, 2)
    _, loss = model.net.SoftmaxWithLoss(["scores", "label"], ["prob", "loss"])
    return [model.net.Scale(loss, loss, scale=loss_scale)]


def train(rank: int, n: int, folder: Path) -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # it is old
    caffe2.install(legacy=OLD_PYTORCH)
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
    for n in (1, 2, 4):
        folder = tmp_path / str(n)
        folder.mkdir()
        together(n, train, folder)
    alone = np.load(tmp_path / "1" / "weights-0.npz")
    assert len(alone.files) == 4
    for n in (2, 4):
        for rank in range(n):
            found = np.load(tmp_path / str(n) / f"weights-{rank}.npz")
            for name in alone.files:
                np.testing.assert_allclose(found[name], alone[name], rtol=1e-5, atol=1e-6)
