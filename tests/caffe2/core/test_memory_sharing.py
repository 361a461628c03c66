# SPDX-License-Identifier: Apache-2.0
"""Nets whose blobs share memory compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def a_tree(depth=4):
    """Two chains from x, which are added up."""
    net = core.Net("tree")
    ends = []
    for side in "ab":
        blob = "x"
        for i in range(depth):
            blob = net.Sin(blob, f"{side}{i}") if i % 2 else net.Exp(blob, f"{side}{i}")
        ends.append(blob)
    net.Add(ends, "y")
    return net


def run(net, wanted):
    workspace.RunNetOnce(net)
    return {name: workspace.FetchBlob(name) for name in wanted}


def blobs_of(net):
    return {name for op in net.op for name in (*op.input, *op.output)}


def shared(data, net):
    found = caffe2_pb2.NetDef.FromString(data)
    assert len(blobs_of(found)) < len(blobs_of(net))
    for op, before in zip(found.op, net.op, strict=True):
        assert op.type == before.type
        pairs = [[a == b for a in one.input for b in one.output] for one in (op, before)]
        assert pairs[0] == pairs[1]  # nothing new is in place
        assert len({*op.output}) == len(op.output)
    return found


def test_an_inference_net_in_order_needs_few_blobs():
    workspace.FeedBlob("x", np.linspace(-1, 1, 5).astype(np.float32))
    net = a_tree()
    expected = run(net, ["y"])
    data = workspace.C.memonger_optimize_inference_net(
        net.Proto().SerializeToString(), [b"x", b"y"]
    )
    found = shared(data, net.Proto())
    assert len(blobs_of(found)) == 5  # x, y, the end of a chain, and two for the other
    np.testing.assert_array_equal(run(found, ["y"])["y"], expected["y"])


def test_outputs_that_nobody_reads_keep_blobs_of_their_own():
    net = core.Net("concat")
    net.Concat([net.Sin("x", "a"), net.Cos("x", "b")], ["c", "sizes"], axis=0)
    net.Exp(net.Exp("c", "d"), "y")
    data = workspace.C.memonger_optimize_inference_net(
        net.Proto().SerializeToString(), [b"x", b"y"]
    )
    assert "sizes" in blobs_of(shared(data, net.Proto()))


@pytest.mark.parametrize("kind", ["simple", "dag"])
def test_independent_chains_share_nothing_with_each_other(kind):
    workspace.FeedBlob("x", np.linspace(-1, 1, 5).astype(np.float32))
    net = a_tree(5)
    expected = run(net, ["y"])
    names = {f"{side}{i}".encode() for side in "ab" for i in range(5)}
    data = workspace.C.memonger_compute_blob_recycling_for_dag(
        net.Proto().SerializeToString(), [b"y"], range(11), names, b"scope/", {b"a0"}, {}
    )
    found = shared(data, net.Proto())
    of_side = [{*op.output} for op in found.op]
    assert not set.union(*of_side[:5]) & set.union(*of_side[5:10])
    assert all(
        name in ("x", "y", "a0") or name[0] in "ab" or name.startswith("scope/__m")
        for name in blobs_of(found)
    )
    assert "a0" in blobs_of(found)
    found.type = kind
    for _ in range(3):
        np.testing.assert_array_equal(run(found, ["y"])["y"], expected["y"])


def test_gradients_that_share_memory_are_the_same():
    workspace.FeedBlob("x", np.linspace(-1, 1, 5).astype(np.float32))
    net = a_tree()
    gradients = net.AddGradientOperators(["y"])
    wanted = ["y", str(gradients["x"])]
    expected = run(net, wanted)
    places = [i for i, op in enumerate(net.Proto().op) if op.is_gradient_op]
    names = {n for i in places for n in net.Proto().op[i].output} - {*wanted}
    data = workspace.C.memonger_compute_blob_recycling_for_dag(
        net.Proto().SerializeToString(), ["y", wanted[1]], places, names, "", set(), {}
    )
    found = shared(data, net.Proto())
    for name, value in run(found, wanted).items():
        np.testing.assert_array_equal(value, expected[name])


def test_an_operator_that_must_work_in_place_and_does_not_is_refused():
    net = caffe2_pb2.NetDef(name="in_place")
    net.op.extend([core.CreateOperator("IndexFreeze", ["a"], ["b"])])
    with pytest.raises(RuntimeError, match="in place"):
        workspace.C.memonger_compute_blob_recycling_for_dag(
            net.SerializeToString(), ["a"], [0], {"b"}, "", set(), {}
        )
