# SPDX-License-Identifier: Apache-2.0
"""Nets in workspaces of their own, loops of them, and the gradients of both."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def net_of(name, *operators):
    net = caffe2_pb2.NetDef(name=name)
    net.op.extend(core.CreateOperator(*one[:3], **dict(one[3:])) for one in operators)
    return net


def create_scope():
    workspace.RunOperatorOnce(core.CreateOperator("CreateScope", [], ["scope"]))


def has_scope():
    workspace.RunOperatorOnce(core.CreateOperator("HasScope", ["scope"], ["has"]))
    found = workspace.FetchBlob("has")
    assert found.shape == (1,)
    return bool(found[0])


def do(inner, inputs=("x",), outputs=("y",), names=("a", "b"), places=(0, 1), **arguments):
    return core.CreateOperator(
        "Do",
        [*inputs, "scope"],
        [*outputs, "scope"],
        net=inner,
        inner_blobs=list(names),
        outer_blobs_idx=list(places),
        **arguments,
    )


def test_inner_names_stand_for_outer_blobs_and_others_stay_inside():
    create_scope()
    assert not has_scope()
    workspace.FeedBlob("x", np.array([3.0], np.float32))
    workspace.CreateBlob("y")
    inner = net_of("inner", ("Sqr", ["a"], ["local"]), ("Add", ["local", "a"], ["b"]))
    workspace.RunOperatorOnce(do(inner))
    assert workspace.FetchBlob("y") == [12]
    assert not workspace.HasBlob("local")
    assert has_scope()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": (0, 0)}, "each of"),
        ({"places": (0, 5)}, "do not name one"),
        ({"names": ("a", "a")}, "do not name one"),
        ({"inputs": ("x", "x"), "names": ("a", "b", "c"), "places": (0, 1, 2)}, "twice"),
    ],
)
def test_names_that_contradict_each_other_are_refused(change, message):
    create_scope()
    workspace.FeedBlob("x", np.array([3.0], np.float32))
    workspace.CreateBlob("y")
    inner = net_of("inner", ("Copy", ["a"], ["b"]))
    with pytest.raises(EnforceNotMet, match=message):
        workspace.RunOperatorOnce(do(inner, **change))


def test_the_gradient_of_a_do_uses_the_values_of_the_forward_run():
    create_scope()
    workspace.FeedBlob("x", np.array([2.0, 3.0], np.float32))
    workspace.CreateBlob("y")
    inner = net_of("inner", ("Sqr", ["a"], ["local"]), ("Mul", ["local", "a"], ["b"]))
    net = core.Net("outer")
    net.Proto().op.extend([do(inner)])
    gradient = net.AddGradientOperators(["y"])["x"]
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(workspace.FetchBlob("y"), [8, 27])
    np.testing.assert_allclose(workspace.FetchBlob(str(gradient)), [12, 27], rtol=1e-6)
    assert not has_scope()


def while_net():
    """While i < 3: i += 1; y = y * x."""
    body = net_of("body", ("Add", ["i", "one"], ["i"]), ("Mul", ["y", "x"], ["y"]))
    loop = caffe2_pb2.NetDef(name="loop")
    names = ["i", "one", "y", "x"]
    loop.op.extend([do(body, inputs=("one", "x", "i", "y"), outputs=("i", "y"), names=names,
                       places=(2, 0, 3, 1))])  # fmt: skip
    again = net_of("again", ("LT", ["i", "three"], ["go"]))
    return core.CreateOperator(
        "While", ["go", "one", "x", "i", "y", "scope"], ["i", "y", "scope"],
        loop_net=loop, cond_net=again,
    )  # fmt: skip


def test_the_gradient_of_a_loop_runs_it_backwards():
    create_scope()
    for name, value in {"i": 0, "one": 1, "three": 3, "x": 2, "y": 5}.items():
        workspace.FeedBlob(name, np.array([value], np.float32))
    workspace.FeedBlob("go", np.array([False]))
    body = while_net()
    for argument in body.arg:
        if argument.name == "loop_net":
            argument.n.op[0].arg.add(name="copy_external_blobs", i=1)
    net = core.Net("outer")
    net.Proto().op.extend([body])
    gradients = net.AddGradientOperators({"y": "y_given"})
    workspace.FeedBlob("y_given", np.array([1.0], np.float32))
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("y") == [40]
    assert workspace.FetchBlob(str(gradients["y"])) == [8]


@pytest.mark.parametrize("taken", [True, False])
def test_the_gradient_of_an_if_is_zero_where_the_other_branch_ran(taken):
    workspace.FeedBlob("c", np.array([taken]))
    workspace.FeedBlob("x", np.array([3.0], np.float32))
    workspace.FeedBlob("z", np.array([4.0], np.float32))
    operator = core.CreateOperator(
        "If",
        ["c", "x", "z"],
        ["y"],
        then_net=net_of("then", ("Sqr", ["x"], ["y"])),
        else_net=net_of("else", ("Mul", ["x", "z"], ["y"])),
    )
    net = core.Net("outer")
    net.Proto().op.extend([operator])
    gradients = net.AddGradientOperators(["y"])
    workspace.RunNetOnce(net)
    found = [float(workspace.FetchBlob(str(gradients[name]))[0]) for name in "xz"]
    assert found == ([6, 0] if taken else [4, 3])
