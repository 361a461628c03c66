# SPDX-License-Identifier: Apache-2.0
"""to_module of nets with operators that run nets: If and While."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

X = np.array([1, -2, 3], np.float32)


def branches() -> core.Net:
    """A net whose branches read blobs of the outer net, and overwrite one of them."""
    workspace.FeedBlob("w", np.array([10, 20, 30], np.float32))
    then, otherwise, net = core.Net("then"), core.Net("otherwise"), core.Net("branches")
    then.Mul(["h", "w"], "y")
    inner = core.Net("inner")
    inner.Copy("x", "y")
    otherwise.If("yes", [], then_net=inner.Proto())
    net.Negative("x", "h")
    net.Copy("h", "y")  # what stays where no branch writes it
    net.If("chosen", [], then_net=then.Proto(), else_net=otherwise.Proto())
    net.Add(["y", "h"], "z")
    net.Proto().external_output.extend(["y", "z"])
    return net


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("chosen", [True, False])
def test_a_module_runs_the_branch_of_its_condition(chosen: bool, yes: bool) -> None:
    net = branches()
    given = {"x": X, "chosen": np.array([chosen]), "yes": np.array([yes])}
    module = caffe2.to_module(net, inputs=list(given))
    assert list(module.state_dict()) == ["w"]
    before = workspace.FetchBlob("w")
    found = module(**given)
    again = copy.deepcopy(module)(**given)
    for name, value in given.items():
        workspace.FeedBlob(name, value)
    workspace.RunNetOnce(net)
    for i, name in enumerate(("y", "z")):
        np.testing.assert_array_equal(found[i].numpy(), workspace.FetchBlob(name))
        np.testing.assert_array_equal(again[i].numpy(), workspace.FetchBlob(name))
    np.testing.assert_array_equal(workspace.FetchBlob("w"), before)


def test_repeated_calls_run_the_branch_of_each_condition() -> None:
    net = branches()
    module = caffe2.to_module(net, inputs=["x", "chosen", "yes"])
    cases = [(chosen, yes) for chosen in (True, False) for yes in (True, False)]
    with torch.no_grad():
        for turn, (chosen, yes) in enumerate(cases * 3):
            given = {"x": X + turn, "chosen": np.array([chosen]), "yes": np.array([yes])}
            found = module(**given)
            for name, value in given.items():
                workspace.FeedBlob(name, value)
            workspace.RunNetOnce(net)
            for i, name in enumerate(("y", "z")):
                np.testing.assert_array_equal(found[i].numpy(), workspace.FetchBlob(name))


def test_a_call_does_not_see_the_writes_of_an_earlier_one() -> None:
    then, net = core.Net("then"), core.Net("net")
    then.Copy("x", "y")
    net.If("chosen", [], then_net=then.Proto())
    module = caffe2.to_module(net, inputs=["x", "chosen"], outputs=["y"])
    with torch.no_grad():
        for turn in (True, False, True, True, False, False):
            found = module(torch.from_numpy(X), torch.tensor([turn]))
            assert found is None if not turn else found.tolist() == X.tolist()


def test_a_branch_that_overwrites_an_input_leaves_the_callers_tensor() -> None:
    then, net = core.Net("then"), core.Net("net")
    then.Scale("x", "x", scale=2.0)
    net.If("chosen", [], then_net=then.Proto())
    net.Copy("x", "y")
    module = caffe2.to_module(net, inputs=["x", "chosen"], outputs=["y"])
    x = torch.from_numpy(X.copy())
    with torch.no_grad():
        for turn in (True, False, True, True, True, False):
            assert module(x, torch.tensor([turn])).tolist() == (X * (1 + turn)).tolist()
    assert x.tolist() == X.tolist()


def test_a_loop_writes_no_blob() -> None:
    for name, value in {"one": 1, "limit": 5, "i": 2}.items():
        workspace.FeedBlob(name, np.array([value], np.int64))
    workspace.FeedBlob("sum", np.zeros(3, np.float32))
    again, loop, net = core.Net("again"), core.Net("loop"), core.Net("net")
    again.LT(["i", "limit"], "more")
    loop.Add(["i", "one"], "i")
    loop.Add(["sum", "x"], "sum")
    net.ConstantFill([], "more", shape=[1], value=0, dtype=core.DataType.BOOL)
    net.While("more", [], cond_net=again.Proto(), loop_net=loop.Proto())
    net.Copy("sum", "y")
    module = caffe2.to_module(net, inputs=["x"], outputs=["y", "i"])
    found: Any = module(X)
    np.testing.assert_array_equal(found[0].numpy(), 3 * X)
    assert found[1].tolist() == [5]
    assert workspace.FetchBlob("i").tolist() == [2]
    assert workspace.FetchBlob("sum").tolist() == [0, 0, 0]
