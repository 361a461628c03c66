# SPDX-License-Identifier: Apache-2.0
"""Padded segments in runs whose calls are recorded."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.operators.segments.padding import add_padding, remove_padding


@pytest.fixture(autouse=True)
def _own_workspace():
    workspace.ResetWorkspace()
    yield
    workspace.ResetWorkspace()


@pytest.mark.parametrize("kind", ["RemovePadding", "GatherPadding"])
def test_segments_that_are_shorter_than_their_padding_are_refused_in_each_run(kind) -> None:
    workspace.FeedBlob("x", np.arange(5, dtype=np.float32))
    workspace.FeedBlob("n", np.array([2, 3], np.int32))
    net = core.Net("padding")
    net.Proto().op.extend([core.CreateOperator(kind, ["x", "n"], ["y", "z"])])
    workspace.CreateNet(net)
    for _ in range(3):
        workspace.RunNet(net)
    assert workspace.FetchBlob("y").tolist() == ([3] if kind == "RemovePadding" else 2)
    workspace.FeedBlob("n", np.array([0, 5], np.int32))
    with pytest.raises(EnforceNotMet):
        workspace.RunNet(net)


@pytest.mark.parametrize("sizes", [(5,), (5, 2, 3), (5, 0)])
def test_kernel_and_traced_functions_pad_alike(sizes) -> None:
    x, lengths = torch.rand(sizes, requires_grad=True), torch.tensor([2, 0, 3]).int()
    first, last = torch.rand(sizes[1:]), torch.rand(sizes[1:])
    traced = add_padding(x, lengths, first, last, padding_width=2, end_padding_width=1)
    with torch.no_grad():
        padded = add_padding(x, lengths, first, last, padding_width=2, end_padding_width=1)
        removed = remove_padding(*padded, padding_width=2, end_padding_width=1)
    assert traced[0].requires_grad
    for one, other in zip((*traced, x, lengths), (*padded, *removed), strict=True):
        assert torch.equal(one, other)
    again = remove_padding(*traced, padding_width=2, end_padding_width=1)
    assert torch.equal(again[0], x)
