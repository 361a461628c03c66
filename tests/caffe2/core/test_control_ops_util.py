# SPDX-License-Identifier: Apache-2.0
"""If and While around nets, by functions and by brew."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import brew, core, workspace
from bridge.caffe2.core.control_ops_util import add_if_op, add_while_op, get_external_blob_names
from bridge.caffe2.modeling.model_helper import ModelHelper

pytestmark = pytest.mark.usefixtures("fresh_workspace")

SCOPE = ["n", "limit", "one", "result"]


def feed(n: int) -> None:
    for name, value in (("n", n), ("limit", 5), ("one", 1), ("result", 0)):
        workspace.FeedBlob(name, np.array(value, np.int64))


def adding(times: int) -> core.Net:
    net = core.Net(f"add{times}")
    net.Copy("n", "own")
    for _ in range(times):
        net.Add(["own", "one"], "own")
    net.Copy("own", "result")
    return net


@pytest.mark.parametrize(("n", "expected"), [(3, 4), (7, 9)])
def test_one_of_two_nets_runs(n: int, expected: int) -> None:
    feed(n)
    net = core.Net("branch")
    net.AddExternalInput(*SCOPE)
    less = net.LT(["n", "limit"])
    add_if_op(net, less, SCOPE, adding(1), adding(2))
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("result") == expected
    assert not workspace.HasBlob("own")


@pytest.mark.parametrize("n", [2, 5])
def test_a_net_runs_while_a_condition_holds(n: int) -> None:
    feed(n)
    body, condition = core.Net("body"), core.Net("condition")
    body.Add(["n", "one"], "n")
    condition.LT(["n", "limit"], "goes_on")
    net = core.Net("loop")
    net.AddExternalInput(*SCOPE)
    add_while_op(net, core.BlobReference("goes_on"), SCOPE, body, condition)
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("n") == 5


@pytest.mark.parametrize(("n", "expected"), [(3, 4), (7, 0)])
def test_cond_runs_one_of_two_models(n: int, expected: int) -> None:
    feed(n)
    model, inner = ModelHelper("outer"), ModelHelper("inner")
    model.net.AddExternalInput(*SCOPE)
    inner.net.Add(["n", "one"], "result")
    brew.cond(model, model.net.LT(["n", "limit"]), SCOPE, inner)
    workspace.RunNetOnce(model.net)
    assert workspace.FetchBlob("result") == expected


def test_loop_runs_a_model_while_its_condition_holds() -> None:
    feed(2)
    model, inner, condition = (ModelHelper(name) for name in ("outer", "body", "condition"))
    model.net.AddExternalInput(*SCOPE)
    inner.net.Add(["n", "one"], "n")
    condition.net.LT(["n", "limit"], "goes_on")
    brew.loop(model, core.BlobReference("goes_on"), SCOPE, inner, condition)
    workspace.RunNetOnce(model.net)
    assert workspace.FetchBlob("n") == 5


def test_blobs_from_outside_a_net_are_found_and_undefined_ones_refused() -> None:
    assert get_external_blob_names(adding(1), SCOPE) == ({"n", "one"}, {"result"})
    with pytest.raises(EnforceNotMet, match="Input blob one is undefined"):
        get_external_blob_names(adding(1), ["n"])
    with pytest.raises(EnforceNotMet, match="does not write into condition blob"):
        add_while_op(core.Net("n"), "goes_on", SCOPE, adding(1), adding(1))
