# SPDX-License-Identifier: Apache-2.0
"""Whole networks, run as nets, give what the real Caffe2 gave: values to 1e-4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

from .case import Case
from .recorded import Outcome, outcomes

pytestmark = pytest.mark.usefixtures("fresh_workspace")

RECORDED = outcomes("nets")
NAMES = [case.name for case, _ in RECORDED]


def built(case: Case) -> core.Net:
    net = core.Net(case.name)
    net.Proto().op.extend(
        core.CreateOperator(op_type, inputs, outputs, **args)
        for op_type, inputs, outputs, args in case.steps
    )
    return net


def initializer(case: Case) -> core.Net:
    """A net that makes the weights."""
    net = core.Net(f"{case.name}_init")
    for name, value in case.feeds.items():
        fill = "GivenTensorIntFill" if value.dtype == np.int32 else "GivenTensorFill"
        net.Proto().op.append(
            core.CreateOperator(fill, [], [name], shape=value.shape, values=value.reshape(-1))
        )
    return net


def check(outcome: Outcome) -> None:
    for name, expected in outcome.blobs.items():
        actual = workspace.FetchBlob(name)
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype), name
        floor = 1e-5 * float(np.abs(expected).max(initial=0))
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=floor, err_msg=name)


@pytest.mark.parametrize(("case", "outcome"), RECORDED, ids=NAMES)
def test_a_net_that_is_created_and_run_agrees_with_caffe2(case: Case, outcome: Outcome) -> None:
    for name, value in case.feeds.items():
        workspace.FeedBlob(name, value)
    net = built(case)
    workspace.CreateNet(net)
    workspace.RunNet(net.Name())
    check(outcome)


@pytest.mark.parametrize(
    ("case", "outcome"), [one for one in RECORDED if one[0].name != "perceptron"]
)
def test_weights_made_by_a_net_and_run_twice(case: Case, outcome: Outcome) -> None:
    workspace.RunNetOnce(initializer(case))
    net = built(case)
    workspace.CreateNet(net)
    workspace.RunNet(net.Name(), 2)
    check(outcome)


def test_predictor_gives_the_outputs_of_its_inputs() -> None:
    case, outcome = RECORDED[NAMES.index("alexnet")]
    init, predict = initializer(case), built(case)
    predict.Proto().external_input.extend(case.feeds)
    predict.Proto().external_output.append("prob")
    predictor: Any = workspace.Predictor(init.Proto(), predict.Proto())
    first = predictor.run([case.feeds["data"]])
    again = predictor.run({"data": case.feeds["data"]})
    for found in (first, again):
        np.testing.assert_allclose(np.asarray(found[0]), outcome.blobs["prob"], rtol=1e-4)
