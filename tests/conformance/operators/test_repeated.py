# SPDX-License-Identifier: Apache-2.0
"""Recorded cases run several times: with new outputs, with buffers, recorded, and repeated."""

from __future__ import annotations

import pytest

from bridge.caffe2 import core, workspace

from .case import Case, groups
from .recorded import Outcome, outcomes
from .test_operators import check_same

pytestmark = pytest.mark.usefixtures("fresh_workspace")

GROUPS = ["convolution", "images", "layers", "losses", "normalization", "pooling", "training"]
COUNTERS = {"Iter", "AtomicIter", "APMeter"}  # each run counts
RECORDED = [
    pytest.param(case, outcome, id=f"{group}-{case.name.replace(' ', '_')}")
    for group in groups()
    if group in GROUPS
    for case, outcome in outcomes(group)
    if outcome.error is None and COUNTERS.isdisjoint(step[0] for step in case.steps)
]


@pytest.mark.parametrize(("case", "outcome"), RECORDED)
def test_each_run_is_as_recorded(case: Case, outcome: Outcome) -> None:
    net = core.Net("net")
    for op_type, inputs, outputs, args in case.steps:
        net.Proto().op.extend([core.CreateOperator(op_type, inputs, outputs, **args)])
    for name, value in case.feeds.items():
        workspace.FeedBlob(name, value)
    workspace.CreateNet(net)
    for _ in range(4):
        for name, value in case.feeds.items():
            workspace.FeedBlob(name, value)
        workspace.RunNet(net)
        for name, expected in outcome.blobs.items():
            if expected is not None:
                check_same(workspace.FetchBlob(name), expected)
