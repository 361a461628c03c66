# SPDX-License-Identifier: Apache-2.0
"""A session runs nets, steps and plans; what it compiled is its own."""

from __future__ import annotations

import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.task import Task
from bridge.caffe2.task.session import LocalSession, Session

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def count() -> core.Net:
    net = core.Net("counts")
    net.Add(["count", net.Const(1)], ["count"])
    return net


def test_nets_steps_and_plans_run_in_the_workspace_of_the_session() -> None:
    net = count()
    plan = core.Plan("of_two")
    plan.AddStep(core.execution_step("first", [count()]))
    plan.AddStep(core.execution_step("second", [count()], num_iter=3))
    own = workspace.C.Workspace()
    for place in (workspace.C.Workspace.current, own):
        place.run(core.CreateOperator("ConstantFill", [], ["count"], shape=[], value=0, dtype=10))
        with LocalSession(place) as session:
            for runnable in (net, net, [count()], core.execution_step("step", count()), plan):
                session.run(runnable)
        assert place.blobs["count"].fetch() == 8
    assert workspace.FetchBlob("count") == 8


def test_a_session_refuses_a_plan_compiled_for_another_class() -> None:
    compiled = LocalSession.compile(Task(step=count()))
    assert LocalSession.compile(compiled) is compiled
    with pytest.raises(AssertionError, match="Need: Session, got: LocalSession"):
        Session.compile(compiled)
    with pytest.raises(AssertionError, match="none runnable"):
        LocalSession().run(None)
    with pytest.raises(AssertionError, match="no steps"):
        LocalSession().run(core.Plan("empty"))
