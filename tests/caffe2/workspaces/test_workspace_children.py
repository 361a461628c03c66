# SPDX-License-Identifier: Apache-2.0
"""Workspaces that see the blobs of another besides their own."""

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.workspace import Workspace
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.fixture
def parent() -> Workspace:
    made = Workspace()
    made.feed_blob("p", np.ones(1))
    return made


def test_a_child_shares_blobs_of_its_parent_and_keeps_new_ones(parent: Workspace) -> None:
    child = Workspace(parent)
    assert child.has_blob("p")
    assert child.fetch_blob("p").tolist() == [1.0]
    child.create_blob("q").feed(np.zeros(1))
    child.feed_blob("p", np.zeros(2))
    child.run(core.CreateOperator("Copy", "p", "copy"))
    assert list(child.blobs) == ["copy", "p", "q"]
    assert len(child.blobs) == 3
    assert list(parent.blobs) == ["p"]
    assert parent.fetch_blob("p").tolist() == [0.0, 0.0]


def test_removing_leaves_the_parents_blob(parent: Workspace) -> None:
    child = Workspace(parent)
    child.remove_blob("p")
    assert child.has_blob("p")
    assert parent.has_blob("p")


def test_a_child_may_be_the_current_workspace(parent: Workspace) -> None:
    child = Workspace(parent)
    with workspace.WorkspaceGuard(child):
        assert workspace.CurrentWorkspace() == "default"
        assert workspace.Blobs() == ["p"]
        assert workspace.HasBlob("p")
        workspace.FeedBlob("p", np.full(1, 5.0))
        workspace.CreateBlob("p")
        workspace.FeedBlob("own", b"text")
        assert list(workspace.blobs) == ["own", "p"]
        assert workspace.C.local_blobs() == ["own"]
        with workspace.WorkspaceGuard("other"):
            assert workspace.Blobs() == []
        assert workspace.Workspace.current is child
        workspace.DeserializeBlob("p", workspace.SerializeBlob("own"))
    assert workspace.Blobs() == []
    assert parent.fetch_blob("p") == b"text"


def test_a_child_is_made_by_the_name_of_its_parent() -> None:
    workspace.FeedBlob("base", np.ones(1))
    workspace.C.create_child_workspace("default", "a child")
    workspace.SwitchWorkspace("a child")
    assert workspace.FetchBlob("base").tolist() == [1.0]
    assert workspace.C.local_blobs() == []
    with pytest.raises(KeyError) as raised:
        workspace.C.create_child_workspace("nobody", "another")
    refused(raised.value, "nobody", kind=KeyError)


@pytest.mark.parametrize("parent", ["default", 3])
def test_only_a_workspace_is_a_parent(parent: Any) -> None:
    with pytest.raises(TypeError) as raised:
        Workspace(parent)
    refused(raised.value, kind=TypeError)
