# SPDX-License-Identifier: Apache-2.0
"""Recorded cases under settings of torch that change what its functions compute, or where.

Each case runs under one of the settings, by turns; ``ALL_SETTINGS=1`` runs each under all of them.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import pytest

from bridge.caffe2 import core, workspace
from tests.helpers.torch_settings import SETTINGS

from .case import groups
from .recorded import outcomes
from .test_operators import check_same
from .test_operators import test_each_recorded_case_gives_the_values_of_caffe2 as check_recorded

pytestmark = pytest.mark.usefixtures("fresh_workspace")

RUNS = 4  # of a net: with new outputs, with buffers, recorded, repeated


EVERY = 1 if os.environ.get("ALL_SETTINGS") else len(SETTINGS)
COUNTERS = {"Iter", "AtomicIter", "APMeter", "AccumulateHistogram"}  # each run counts


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("group", groups())
def test_each_recorded_case_gives_the_same_under_settings_of_torch(
    group: str, setting: str
) -> None:
    first = 0 if EVERY == 1 else list(SETTINGS).index(setting)
    for case, outcome in list(outcomes(group))[first::EVERY]:
        workspace.ResetWorkspace()
        with SETTINGS[setting](), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deterministic mode announces what is not
            check_recorded(case, outcome)
            if outcome.error is None and len(case.steps) == 1:
                _check_net(case, outcome)


def _check_net(case: Any, outcome: Any) -> None:
    op_type, inputs, outputs, arguments = case.steps[0]
    if op_type in COUNTERS or set(inputs) & set(outputs):
        return
    net = core.Net("net")
    net.Proto().op.append(core.CreateOperator(op_type, inputs, outputs, **arguments))
    workspace.CreateNet(net)
    for _ in range(RUNS):
        workspace.RunNet(net)
    for name, expected in outcome.blobs.items():
        if expected is not None:
            check_same(workspace.FetchBlob(name), expected)
