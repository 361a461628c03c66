# SPDX-License-Identifier: Apache-2.0
"""HSoftmax: what its conformance cases do not show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, hsm_util, workspace
from bridge.caffe2.operators.layers import hierarchical_softmax
from bridge.caffe2.proto import hsm_pb2


def test_a_hierarchy_is_read_in_the_first_run_only(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = [hsm_util.create_node_with_words(words, str(words)) for words in ([0, 1], [2, 3, 4])]
    tree = hsm_pb2.TreeProto()
    tree.root_node.MergeFrom(hsm_util.create_node_with_nodes(leaves, "root"))
    hierarchy = hsm_util.create_hierarchy(tree).SerializeToString()
    random = np.random.RandomState(0)
    for name, sizes in (("x", (3, 4)), ("w", (7, 4)), ("b", (7,))):
        workspace.FeedBlob(name, random.randn(*sizes).astype(np.float32))
    workspace.FeedBlob("labels", np.array([0, 3, 4], np.int32))
    net = core.Net("words")
    net.HSoftmax(["x", "w", "b", "labels"], ["loss", "kept"], hierarchy=hierarchy)
    workspace.CreateNet(net)
    workspace.RunNet(net)
    first = workspace.FetchBlob("loss")

    def refuse(*_: Any) -> None:
        pytest.fail("the hierarchy is read again")

    monkeypatch.setattr(hierarchical_softmax, "_message", refuse)
    workspace.RunNet(net)
    np.testing.assert_array_equal(workspace.FetchBlob("loss"), first)
