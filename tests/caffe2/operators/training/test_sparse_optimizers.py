# SPDX-License-Identifier: Apache-2.0
"""Steps on rows by kernels are those of torch's functions, for rows that occur twice too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.operators.training import sparse_optimizers

pytestmark = pytest.mark.usefixtures("fresh_workspace")

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "SparseMomentumSGDUpdate": ("g m lr w i > g m w", {"momentum": 0.9}),
    "SparseMomentumSGDUpdate nesterov": ("g m lr w i > g m w", {"momentum": 0.9, "nesterov": 1}),
    "SparseAdadelta": ("w m v i g lr > w m v", {"decay": 0.9}),
    "SparseFtrl": ("w pairs i g > w pairs", {"alpha": 0.1, "lambda1": 0.05}),
    "SparseFtrl alpha": ("w pairs i g lr > w pairs", {"lambda1": 0.05}),
    "SparseWngrad": ("w one i g lr > w one", {}),
    "SparseStorm": ("w m one g i lr > w m one", {"momentum": 3.0}),
}


def run(case: str, index: type) -> dict[str, Any]:
    names, arguments = CASES[case]
    inputs, outputs = (part.split() for part in names.split(" > "))
    random = np.random.RandomState(3)
    sizes = {"w": (4, 3), "m": (4, 3), "v": (4, 3), "pairs": (4, 3, 2), "one": (1,), "lr": (1,)}
    for name, size in sizes.items():
        workspace.FeedBlob(name, random.rand(*size).astype(np.float32))
    net = core.Net("steps")
    net.Proto().op.append(core.CreateOperator(case.split()[0], inputs, outputs, **arguments))
    workspace.CreateNet(net, input_blobs=[*inputs], overwrite=True)
    for n in (3, 3, 3, 5, 0, 5):
        workspace.FeedBlob("i", np.array([2, 0, 2, 3, 2][:n], index))
        workspace.FeedBlob("g", random.rand(n, 3).astype(np.float32) - 0.5)
        workspace.RunNet(net)
    return {name: workspace.FetchBlob(name) for name in outputs}


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("case", CASES)
def test_kernels_take_the_steps_of_the_functions(
    case: str, index: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(case, index)
    monkeypatch.setattr(sparse_optimizers, "takes_kernels", lambda *tensors: False)
    for name, expected in run(case, index).items():
        np.testing.assert_allclose(found[name], expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_row_changes_nothing(case: str) -> None:
    run(case, np.int64)
    names, arguments = CASES[case]
    inputs, outputs = (part.split() for part in names.split(" > "))
    workspace.FeedBlob("i", np.array([0, 4]))
    workspace.FeedBlob("g", np.ones((2, 3), np.float32))
    before = {name: workspace.FetchBlob(name) for name in outputs}
    with pytest.raises(RuntimeError, match=r"from 0 to below 4; got .*\[0, 4\]"):
        workspace.RunOperatorOnce(
            core.CreateOperator(case.split()[0], inputs, outputs, **arguments)
        )
    for name, value in before.items():
        np.testing.assert_array_equal(workspace.FetchBlob(name), value)


@pytest.mark.parametrize("type_", ["SparseAdagrad", "RowWiseSparseAdagrad"])
def test_an_infinite_weight_without_decay_stays_and_leaves_its_moments_finite(type_: str) -> None:
    """As the real Caffe2 has it, which was asked: 0 times infinity is not added."""
    workspace.FeedBlob("w", np.array([[np.inf, 1.0, 2.0]], np.float32))
    workspace.FeedBlob("m", np.ones((1, 3) if type_ == "SparseAdagrad" else 1, np.float32))
    workspace.FeedBlob("i", np.zeros(1, np.int64))
    workspace.FeedBlob("g", np.ones((1, 3), np.float32))
    workspace.FeedBlob("lr", np.array([0.1], np.float32))
    workspace.RunOperatorOnce(core.CreateOperator(type_, ["w", "m", "i", "g", "lr"], ["w", "m"]))
    assert workspace.FetchBlob("w")[0, 0] == np.inf
    np.testing.assert_array_equal(workspace.FetchBlob("m"), 2.0)
