# SPDX-License-Identifier: Apache-2.0
"""What scripts get of blobs that hold no tensor, as the real Caffe2 said of the same blobs."""

from __future__ import annotations

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, script_workspace, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_objects_are_described() -> None:
    workspace.RunOperatorOnce(core.CreateOperator("CreateMutex", [], ["x"]))
    said = b"x, a C++ native class of type std::unique_ptr<std::mutex>."
    assert script_workspace.FetchBlob("x") == said
    assert script_workspace.FetchBlob(core.BlobReference("x")) == said
    assert script_workspace.FetchBlobs([b"x"]) == [script_workspace.blobs["x"]] == [said]
    with pytest.raises(c10.EnforceNotMet, match="cannot be fetched"):
        workspace.FetchBlob("x")


def test_other_blobs_are_fetched_as_ever() -> None:
    workspace.CreateBlob("empty")
    said = b"empty, a C++ native class of type nullptr (uninitialized)."
    assert script_workspace.FetchBlob("empty") == said
    script_workspace.FeedBlob("x", np.arange(3))
    assert script_workspace.FetchBlob("x").tolist() == [0, 1, 2]
    script_workspace.blobs["text"] = "abc"
    assert workspace.FetchBlob("text") == script_workspace.blobs["text"] == b"abc"
    with pytest.raises(KeyError):
        script_workspace.FetchBlob("nowhere")
    args = {"shape": [2], "values": b"ab", "Y_scale": 1.0, "Y_zero_point": 0}
    workspace.RunOperatorOnce(core.CreateOperator("Int8GivenTensorFill", [], ["q"], **args))
    with pytest.raises(c10.EnforceNotMet, match="use FetchInt8Blob"):
        script_workspace.FetchBlob("q")


def test_all_names_are_there() -> None:
    assert set(workspace.__all__) <= set(dir(script_workspace))
    for name in workspace.__all__:
        assert hasattr(script_workspace, name)
