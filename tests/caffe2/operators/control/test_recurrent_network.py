# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks: a step net for each row of a sequence, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")

STEPS, N, D = 4, 3, 5


def net_of(name, *operators):
    net = caffe2_pb2.NetDef(name=name, type="simple")
    net.op.extend(core.CreateOperator(*one[:3], **dict(one[3:])) for one in operators)
    return net


def recurrent(**arguments):
    """An operator whose steps are h = tanh(h_prev w^T + b) * x_t."""
    step = net_of(
        "step",
        ("FC", ["h_prev", "w", "b"], ["z"], ("axis", 2)),
        ("Tanh", ["z"], ["a"]),
        ("Mul", ["a", "x_t"], ["h"]),
    )
    back = net_of(
        "back",
        ("MulGradient", ["h_grad", "a", "x_t"], ["a_grad", "x_t_grad"]),
        ("TanhGradient", ["a", "a_grad"], ["z_grad"]),
        ("FCGradient", ["h_prev", "w", "z_grad"], ["w_grad", "b_grad", "h_prev_grad"], ("axis", 2)),
    )
    given = {
        "alias_src": ["states", "states"],
        "alias_dst": ["all", "last"],
        "alias_offset": [1, -1],
        "recurrent_states": ["states"],
        "initial_recurrent_state_ids": [1],
        "link_internal": ["h_prev", "h", "x_t"],
        "link_external": ["states", "states", "x"],
        "link_offset": [0, 1, 0],
        "step_net": step,
        "backward_step_net": back,
        "param": [2, 3],
        "param_grads": ["w_grad", "b_grad"],
        "backward_link_internal": ["h_grad", "h_prev_grad", "x_t_grad"],
        "backward_link_external": ["states_grad", "states_grad", "x_grad"],
        "backward_link_offset": [1, 0, 0],
        "outputs_with_grads": [0, 1],
    }
    inputs, outputs = ["x", "h0", "w", "b"], ["all", "last", "scratch"]
    return core.CreateOperator("RecurrentNetwork", inputs, outputs, **{**given, **arguments})


def feed(initial=(N, D)):
    random = np.random.RandomState(0)
    sizes = {"x": (STEPS, N, D), "h0": initial, "w": (D, D), "b": (D,)}
    values = {name: random.randn(*size).astype(np.float32) for name, size in sizes.items()}
    for name, value in values.items():
        workspace.FeedBlob(name, value)
    return {name: torch.tensor(value, requires_grad=True) for name, value in values.items()}


def expected(blobs, n=N):
    h = blobs["h0"].reshape(-1, D).expand(n, D)
    found = []
    for x in blobs["x"]:
        h = torch.tanh(h @ blobs["w"].t() + blobs["b"]) * x
        found.append(h)
    return torch.stack(found)


@pytest.mark.parametrize("initial", [(N, D), (1, N, D), (D,)])
def test_steps_and_their_gradients_agree_with_torch_in_each_run(initial):
    blobs = feed(initial)
    states = expected(blobs)
    random = np.random.RandomState(1)
    of_all = random.randn(STEPS, N, D).astype(np.float32)
    of_last = random.randn(1, N, D).astype(np.float32)
    workspace.FeedBlob("of_all", of_all)
    workspace.FeedBlob("of_last", of_last)
    (states * torch.tensor(of_all)).sum().add((states[-1] * torch.tensor(of_last)).sum()).backward()
    net = core.Net("recurrent")
    net.Proto().op.extend([recurrent()])
    gradients = net.AddGradientOperators({"all": "of_all", "last": "of_last"})
    workspace.CreateNet(net)
    for _ in range(4):  # later runs repeat recorded calls
        workspace.RunNet(net)
        np.testing.assert_allclose(workspace.FetchBlob("all"), states.detach(), atol=1e-5)
        np.testing.assert_allclose(workspace.FetchBlob("last")[0], states[-1].detach(), atol=1e-5)
        for name, blob in blobs.items():
            found = workspace.FetchBlob(str(gradients[name]))
            assert found.shape == tuple(blob.shape)
            np.testing.assert_allclose(found, blob.grad, atol=1e-4)


def test_another_number_of_steps_is_run_by_the_same_net():
    blobs = feed()
    net = core.Net("recurrent")
    net.Proto().op.extend([recurrent()])
    workspace.CreateNet(net)
    for steps in (STEPS, 1, 2, STEPS):
        workspace.FeedBlob("x", blobs["x"].detach().numpy()[:steps])
        workspace.RunNet(net)
        expect = expected({**blobs, "x": blobs["x"][:steps]}).detach()
        np.testing.assert_allclose(workspace.FetchBlob("all"), expect, atol=1e-5)


def test_batches_of_other_sizes_are_run_by_the_same_net():
    blobs = feed()
    net = core.Net("recurrent")
    net.Proto().op.extend([recurrent(outputs_with_grads=[0])])
    ones = net.ConstantFill("all", "ones", value=1.0)
    gradients = net.AddGradientOperators({"all": ones})
    workspace.CreateNet(net)
    for n in (N, N, 1, 2, N, 1):  # smaller ones use the memory of larger ones
        x, h = blobs["x"][:, :n].detach().numpy(), blobs["h0"][:n].detach().numpy()
        given = {**blobs, "x": torch.tensor(x, requires_grad=True), "h0": torch.tensor(h)}
        workspace.FeedBlob("x", x)
        workspace.FeedBlob("h0", h)
        workspace.RunNet(net)
        states = expected(given, n)
        np.testing.assert_allclose(workspace.FetchBlob("all"), states.detach(), atol=1e-5)
        states.sum().backward()
        found = workspace.FetchBlob(str(gradients["x"]))
        np.testing.assert_allclose(found, given["x"].grad, atol=1e-4)


def test_sequences_of_another_type_are_run_by_the_same_net():
    net = core.Net("recurrent")
    step = net_of("step", ("Add", ["h_prev", "x_t"], ["h"]))
    net.Proto().op.extend([recurrent(step_net=step)])
    feed()
    workspace.CreateNet(net)
    for dtype in (np.float32, np.int32, np.float32):  # of one size, in the same memory
        x = np.arange(STEPS * N * D).reshape(STEPS, N, D).astype(dtype)
        workspace.FeedBlob("x", x)
        workspace.FeedBlob("h0", x[0])
        workspace.RunNet(net)
        expect = x[0] + np.cumsum(x, 0)
        for name, value in (("all", expect), ("last", expect[-1:])):
            found = workspace.FetchBlob(name)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, value)


def test_a_step_may_give_other_sizes_to_its_linked_blobs():
    feed()
    step = net_of(
        "step",
        ("Mul", ["h_prev", "x_t"], ["h"]),
        ("Reshape", ["h"], ["h", "old"], ("shape", [N, D])),
        ("ReduceFrontSum", ["h"], ["sums"]),
        ("Tile", ["sums"], ["tiled"], ("tiles", N), ("axis", 0)),
        ("Reshape", ["tiled"], ["rows", "of_tiled"], ("shape", [N, D])),
        ("Add", ["h", "rows"], ["h"]),
    )
    workspace.RunOperatorOnce(recurrent(step_net=step))
    h, x = workspace.FetchBlob("h0"), workspace.FetchBlob("x")
    for t in range(STEPS):
        h = h * x[t] + (h * x[t]).sum(0)
        np.testing.assert_allclose(workspace.FetchBlob("all")[t], h, rtol=1e-4)


def test_the_step_net_may_be_text_and_then_two_workspaces_take_turns():
    blobs = feed()
    step = str(next(one.n for one in recurrent().arg if one.name == "step_net"))
    workspace.RunOperatorOnce(recurrent(step_net=step, backward_step_net=""))
    np.testing.assert_allclose(workspace.FetchBlob("all"), expected(blobs).detach(), atol=1e-5)
    workspace.RunOperatorOnce(
        core.CreateOperator("RecurrentNetworkBlobFetcher", ["scratch"], ["names"], prefix="r")
    )
    names = {name.decode() for name in workspace.FetchBlob("names")}
    assert {f"r_{name}{i}" for name in ("a", "h", "h_prev", "timestep") for i in (0, 1)} <= names
    np.testing.assert_array_equal(workspace.FetchBlob("r_h1"), workspace.FetchBlob("last"))
    assert workspace.FetchBlob("r_timestep1") == [3]


def test_outputs_share_the_memory_of_the_states():
    feed()
    workspace.RunOperatorOnce(recurrent())
    assert (
        workspace.FetchTorch("all").untyped_storage().data_ptr()
        == workspace.FetchTorch("states").untyped_storage().data_ptr()
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"link_offset": [0, 1]}, "one link each"),
        ({"link_offset": [0, 2, 0]}, "needs 1 rows from 5"),
        ({"initial_recurrent_state_ids": []}, "recurrent_states"),
        ({"step_net": ""}, "needs the argument step_net"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changed, message):
    feed()
    with pytest.raises(EnforceNotMet, match=message):
        workspace.RunOperatorOnce(recurrent(**changed))


def test_a_step_that_fails_is_named_with_its_position():
    feed()
    workspace.FeedBlob("w", np.zeros((D, D + 1), np.float32))
    with pytest.raises(EnforceNotMet, match=r"'FC'.*position 0 of net 'step'"):
        workspace.RunOperatorOnce(recurrent())


def test_links_and_accumulation_run_as_operators_of_their_own():
    workspace.FeedBlob("t", np.array([1], np.int32))
    workspace.FeedBlob("whole", np.arange(6, dtype=np.float32).reshape(3, 2))
    workspace.RunOperatorOnce(
        core.CreateOperator(
            "rnn_internal_apply_link", ["t", "whole"], ["part", "whole"], offset=1, window=1
        )
    )
    assert workspace.FetchBlob("part").tolist() == [[4, 5]]
    workspace.FetchTorch("part").fill_(7)
    assert workspace.FetchBlob("whole")[2].tolist() == [7, 7]
    workspace.FeedBlob("outer", np.full((2, 2), 10, np.float32))
    workspace.RunOperatorOnce(
        core.CreateOperator(
            "rnn_internal_accumulate_gradient_input", ["t", "outer", "whole"], ["whole"], offset=1
        )
    )
    assert workspace.FetchBlob("whole").tolist() == [[0, 1], [2, 3], [17, 17]]
