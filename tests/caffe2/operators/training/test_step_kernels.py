# SPDX-License-Identifier: Apache-2.0
"""Steps on a few elements by kernels are those of torch's functions, in place and not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.operators.training import ftrl, optimizers

pytestmark = pytest.mark.usefixtures("fresh_workspace")

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Adam": ("w m v g lr it", "w m v", {}),
    "Adam with steps": ("w m v g lr it", "w m v s", {"beta1": 0.8}),
    "Adam elsewhere": ("w m v g lr it", "x y z s", {}),
    "Adagrad": ("w m g lr", "w m", {"decay": 0.9, "weight_decay": 0.1}),
    "Wngrad": ("w one g lr", "w one", {}),
    "MomentumSGDUpdate": ("g m lr w", "g m w", {"momentum": 0.9}),
    "MomentumSGDUpdate nesterov": ("g m lr w", "g m w", {"momentum": 0.9, "nesterov": 1}),
    "Adadelta": ("w m v g lr", "w m v", {"decay": 0.9}),
    "Storm": ("w m one g lr", "w m one", {"momentum": 3.0}),
    "RmsProp": ("g v m lr", "g v m", {"momentum": 0.9}),
    "Ftrl": ("w pairs g", "w pairs", {"alpha": 0.1, "lambda1": 0.05}),
    "Ftrl alpha": ("w pairs g lr", "w pairs", {"lambda1": 0.05}),
}
SIZES = {"pairs": (2, 3, 2), "one": (1,), "lr": (1,)}


def run(case: str) -> dict[str, Any]:
    inputs, outputs, arguments = CASES[case]
    random = np.random.RandomState(5)
    for name in dict.fromkeys(inputs.split()):
        value = random.rand(*SIZES.get(name, (2, 3))).astype(np.float32)
        workspace.FeedBlob(name, value)
    net = core.Net("steps")
    operator = core.CreateOperator(case.split()[0], inputs.split(), outputs.split(), **arguments)
    net.Proto().op.append(operator)
    workspace.CreateNet(net, overwrite=True)
    for iteration in range(1, 6):
        workspace.FeedBlob("it", np.array([iteration]))
        workspace.FeedBlob("g", random.rand(2, 3).astype(np.float32) - 0.5)
        workspace.RunNet(net)
    return {name: workspace.FetchBlob(name) for name in outputs.split()}


@pytest.mark.parametrize("case", CASES)
def test_kernels_take_the_steps_of_the_functions(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(case)
    for module in (ftrl, optimizers):
        monkeypatch.setattr(module, "takes_few", lambda *tensors: False)
    for name, expected in run(case).items():
        np.testing.assert_allclose(found[name], expected, rtol=3e-5, atol=1e-6)
