# SPDX-License-Identifier: Apache-2.0
"""Immediate mode, plans in the background, and where operators were added."""

import logging
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.fixture
def immediate() -> Iterator[None]:
    workspace.StartImmediate(i_know=True)
    yield
    workspace.StopImmediate()


def test_the_root_folder_lasts_as_long_as_the_mode() -> None:
    assert workspace._immediate_root_folder == ""
    workspace.StartImmediate(i_know=True)
    folder = workspace._immediate_root_folder
    assert os.path.isdir(folder)
    workspace.StopImmediate()
    assert workspace._immediate_root_folder == "" and not os.path.exists(folder)


@pytest.mark.usefixtures("immediate")
def test_operators_run_when_they_are_made() -> None:
    workspace.FeedImmediate("x", np.array([-1.0, 2.0], np.float32))
    core.CreateOperator("Relu", "x", "y")
    net = core.Net("immediate")
    net.Copy("y", "z")
    assert workspace.FetchImmediate("z").tolist() == [0.0, 2.0]
    assert workspace.ImmediateBlobs() == ["x", "y", "z"]
    assert workspace.Blobs() == []


@pytest.mark.usefixtures("immediate")
def test_a_failure_leaves_the_workspace_of_the_script_current() -> None:
    with pytest.raises(EnforceNotMet):
        core.CreateOperator("Copy", "absent", "y")
    with pytest.raises(KeyError):
        workspace.FetchImmediate("absent")
    assert workspace.CurrentWorkspace() == "default"


def test_the_folder_is_there_while_the_mode_is_on(capsys: pytest.CaptureFixture[str]) -> None:
    workspace.StartImmediate()
    assert "StopImmediate()" in capsys.readouterr().out
    with workspace.WorkspaceGuard("_CAFFE2_IMMEDIATE"):
        folder = workspace.RootFolder()
    assert os.path.isdir(folder)
    assert workspace.IsImmediate()
    workspace.StopImmediate()
    assert not os.path.exists(folder)
    assert not workspace.IsImmediate()
    assert workspace.ImmediateBlobs() == []


def test_a_plan_runs_in_the_background() -> None:
    gate = threading.Event()
    net = core.Net("waits")
    net.Python(lambda i, o: gate.wait(300) and o[0].feed(np.ones(1)))([], "y")
    plan = workspace.RunPlanInBackground(core.execution_step("step", net))
    assert not plan.is_done()
    with pytest.raises(RuntimeError) as raised:
        plan.is_succeeded()
    refused(raised.value, "is_done()")
    gate.set()
    wait_for(plan)
    assert plan.is_succeeded()
    assert workspace.FetchBlob("y").tolist() == [1.0]


def test_a_plan_that_fails_in_the_background_says_so_when_asked() -> None:
    net = core.Net("fails")
    net.Copy("absent", "y")
    plan = workspace.RunPlanInBackground(core.execution_step("step", net))
    wait_for(plan)
    for _ in range(2):
        with pytest.raises(RuntimeError) as raised:
            plan.is_succeeded()
        refused(raised.value, "absent")


def wait_for(plan: Any) -> None:
    deadline = time.monotonic() + 300
    while not plan.is_done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_lines_where_operators_were_added_are_known(caplog: pytest.LogCaptureFixture) -> None:
    net = core.Net("traced")
    net.Copy("x", "y")
    net.GetBlobRef("y").Copy([], "z")
    places = workspace.operator_tracebacks["traced"]
    assert places[0][0][2] == "test_the_lines_where_operators_were_added_are_known"
    net.PopulateProtoWithFileName()
    assert net.Proto().op[0].name.startswith(__file__)

    def fails() -> None:
        raise ValueError("no")

    with caplog.at_level(logging.WARNING), pytest.raises(ValueError, match="no"):
        workspace.CallWithExceptionIntercept(fails, lambda: 0, "traced")
    assert "in test_the_lines_where_operators_were_added_are_known" in caplog.text
    assert workspace.CallWithExceptionIntercept(max, lambda: 0, "traced", 1, 2) == 2
