# SPDX-License-Identifier: Apache-2.0
"""Summarize into a file, and what freed blobs hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.fixture
def folder() -> Path:
    return Path(workspace.RootFolder())


def test_each_run_adds_a_line_and_each_operator_begins_anew(folder: Path) -> None:
    workspace.FeedBlob("x", np.array([[1, 2], [3, 5]], np.float32))
    net = core.Net("net")
    net.Summarize("x", [], to_file=1)
    workspace.CreateNet(net)
    workspace.RunNet(net)
    workspace.RunNet(net)
    line = "1 5 2.75 1.70783\n"
    assert (folder / "x.summary").read_text() == line * 2
    workspace.CreateNet(net, overwrite=True)
    workspace.RunNet(net)
    assert (folder / "x.summary").read_text() == line


def test_a_freed_blob_holds_nothing_and_can_be_filled_again() -> None:
    workspace.FeedBlob("x", np.ones(2))
    workspace.RunOperatorOnce(core.CreateOperator("Free", ["x"], ["x"]))
    with pytest.raises(c10.EnforceNotMet):
        workspace.FetchBlob("x")
    workspace.FeedBlob("x", np.zeros(2))
    assert workspace.FetchBlob("x").tolist() == [0, 0]
