# SPDX-License-Identifier: Apache-2.0
"""If and While: nets that run inside of an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def net(name: str, *operators: Any) -> Any:
    made = core.Net(name)
    made.Proto().op.extend(operators)
    return made.Proto()


def filled(value: float) -> Any:
    return core.CreateOperator("ConstantFill", [], ["y"], shape=[1], value=value)


@pytest.mark.parametrize(("condition", "expected"), [(True, 1.0), (False, 2.0)])
def test_if_runs_the_net_of_its_condition(condition: bool, expected: float) -> None:
    workspace.FeedBlob("c", np.array([condition]))
    operator = core.CreateOperator(
        "If", ["c"], [], then_net=net("a", filled(1.0)), else_net=net("b", filled(2.0))
    )
    workspace.RunOperatorOnce(operator)
    assert workspace.FetchBlob("y").tolist() == [expected]


def test_if_without_else_does_nothing() -> None:
    workspace.FeedBlob("c", np.array([False]))
    workspace.FeedBlob("y", np.array([7.0], np.float32))
    workspace.RunOperatorOnce(core.CreateOperator("If", ["c"], [], then_net=net("a", filled(1.0))))
    assert workspace.FetchBlob("y").tolist() == [7.0]


def test_if_needs_a_net_and_one_bool() -> None:
    workspace.FeedBlob("c", np.array([True, False]))
    workspace.FeedBlob("n", np.array([1], np.int32))
    with pytest.raises(c10.EnforceNotMet, match="then_net"):
        workspace.RunOperatorOnce(core.CreateOperator("If", ["c"], []))
    for name in ("c", "n"):
        operator = core.CreateOperator("If", [name], [], then_net=net("a", filled(1.0)))
        with pytest.raises(c10.EnforceNotMet):
            workspace.RunOperatorOnce(operator)


def test_an_error_inside_names_the_operator_inside() -> None:
    workspace.FeedBlob("c", np.array([True]))
    workspace.FeedBlob("d", np.ones(2))
    inner = net("inner", core.CreateOperator("Relu", ["d"], ["e"]))
    with pytest.raises(c10.EnforceNotMet, match=r"'Relu'.*position 0 of net 'inner\w*'"):
        workspace.RunOperatorOnce(core.CreateOperator("If", ["c"], [], then_net=inner))


def test_while_runs_as_long_as_its_condition_holds() -> None:
    workspace.FeedBlob("i", np.array([0], np.int64))
    workspace.FeedBlob("end", np.array([5], np.int64))
    workspace.FeedBlob("go", np.array([True]))
    operator = core.CreateOperator(
        "While",
        ["go"],
        [],
        cond_net=net("check", core.CreateOperator("LT", ["i", "end"], ["go"])),
        loop_net=net("count", core.CreateOperator("Iter", ["i"], ["i"])),
    )
    workspace.RunOperatorOnce(operator)
    assert workspace.FetchBlob("i").tolist() == [5]
    assert workspace.FetchBlob("go").tolist() == [False]
