# SPDX-License-Identifier: Apache-2.0
"""Runs of operators that are functions: the first, with buffers, recorded, and repeated ones."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

Out = Any


def test_every_run_computes_under_another_default_device() -> None:
    net = core.Net("relu")
    net.Negative("x", "y")
    net.Relu("y", "y")
    x = np.array([-1, 2, -3], np.float32)
    workspace.FeedBlob("x", x)
    workspace.CreateNet(net)
    with torch.device("meta"):
        for _ in range(5):
            workspace.RunNet(net)
            np.testing.assert_array_equal(workspace.FetchBlob("y"), [1, 0, 3])


@pytest.mark.parametrize("once", [False, True])
def test_two_blobs_that_are_fed_one_tensor_and_then_another(once: bool) -> None:
    net = core.Net("product")
    net.Mul(["a", "b"], "c")
    tensor = torch.ones(3)
    workspace.FeedBlob("a", tensor)
    workspace.FeedBlob("b", tensor)
    workspace.CreateNet(net)

    def check(expected: float) -> None:
        if once:
            workspace.RunOperatorOnce(net.Proto().op[0])
        else:
            workspace.RunNet(net)
        np.testing.assert_array_equal(workspace.FetchBlob("c"), [expected] * 3)

    for _ in range(5):
        check(1)
    workspace.FeedBlob("b", torch.full((3,), 5.0))
    check(5)
    workspace.FeedBlob("a", torch.full((3,), 7.0))
    check(35)


@pytest.mark.parametrize("device", [0, pytest.param(1, marks=pytest.mark.cuda)])
@pytest.mark.parametrize("once", [False, True])
def test_a_run_in_place_may_change_the_sizes(once: bool, device: int) -> None:
    """What a run was given is told from what it leaves there, which the next run is given."""
    option = core.DeviceOption(device)
    net = core.Net("reshaped")
    with core.DeviceScope(option):
        net.Reshape("x", ["x", "old"], shape=[-1])
    workspace.FeedBlob("x", np.zeros(1, np.float32), option)
    workspace.CreateNet(net)
    for sizes in ((2, 1), (2, 1), (3,), (1, 2, 3), (6,), (2, 3), (), (1,)) * 2:
        workspace.FeedBlob("x", np.zeros(sizes, np.float32), option)
        for given in (sizes, (int(np.prod(sizes)),)):
            if once:
                workspace.RunOperatorOnce(net.Proto().op[0])
            else:
                workspace.RunNet(net)
            assert workspace.FetchBlob("old").tolist() == list(given)
            assert workspace.FetchBlob("x").shape == (int(np.prod(sizes)),)


def test_sizes_that_come_again_run_their_own_program() -> None:
    net = core.Net("rows")
    net.Gather(["w", "indices"], "picked")
    net.ReduceFrontSum("picked", "sum")
    net.Relu("picked", "picked_too")
    net.SparseAdagrad(["w", "h", "indices", "picked_too", "rate"], ["w", "h"])
    w, h = np.arange(1, 6, dtype=np.float32), np.full(5, 0.5, np.float32)
    workspace.FeedBlob("w", w)
    workspace.FeedBlob("h", h)
    workspace.FeedBlob("rate", np.full(1, -0.1, np.float32))
    workspace.FeedBlob("indices", np.arange(2))
    workspace.CreateNet(net)
    random = np.random.RandomState(0)
    for turn in range(200):
        indices = random.permutation(5)[: random.randint(6)].astype([np.int64, np.int32][turn % 2])
        workspace.FeedBlob("indices", indices)
        workspace.RunNet(net)
        picked = w[indices]
        np.testing.assert_allclose(workspace.FetchBlob("picked"), picked, rtol=1e-5)
        np.testing.assert_allclose(workspace.FetchBlob("sum"), picked.sum(), rtol=1e-5)
        h[indices] += picked * picked
        w[indices] -= 0.1 * picked / (np.sqrt(h[indices]) + 1e-5)
        np.testing.assert_allclose(workspace.FetchBlob("w"), w, rtol=1e-5)


def test_a_program_of_other_sizes_that_fails_leaves_the_output() -> None:
    net = core.Net("rows")
    net.Gather(["w", "indices"], "picked")
    workspace.FeedBlob("w", np.arange(5, dtype=np.float32))
    sizes = [np.arange(2), np.arange(4)]
    workspace.FeedBlob("indices", sizes[0])
    workspace.CreateNet(net)
    for turn in range(12):
        workspace.FeedBlob("indices", sizes[turn % 2])
        workspace.RunNet(net)
    workspace.FeedBlob("indices", np.array([1, 9]))
    with pytest.raises(EnforceNotMet, match="9"):
        workspace.RunNet(net)
    np.testing.assert_array_equal(workspace.FetchBlob("picked"), np.arange(4))
    workspace.FeedBlob("indices", sizes[0])
    workspace.RunNet(net)
    np.testing.assert_array_equal(workspace.FetchBlob("picked"), np.arange(2))


def test_programs_of_other_sizes_do_not_hold_large_tensors() -> None:
    net = core.Net("relu")
    net.Relu("x", "y")
    workspace.FeedBlob("x", np.ones(1, np.float32))
    workspace.CreateNet(net)
    released = []
    for turn in range(12):
        x = torch.ones(100_000 + turn % 2)
        weakref.finalize(x.untyped_storage(), released.append, turn)
        workspace.FeedBlob("x", x)
        workspace.RunNet(net)
    del x
    assert len(released) >= 10


def test_a_failed_step_that_was_recorded_changes_nothing() -> None:
    net = core.Net("rate")
    net.LearningRate("n", "rate", base_lr=1.0, policy="composite", sub_policy_num_iters=[5],
                     sub_policy_0_policy="fixed")  # fmt: skip
    workspace.FeedBlob("n", np.array([1]))
    workspace.CreateNet(net)
    for _ in range(5):
        workspace.RunNet(net)
    workspace.FeedBlob("rate", np.array(7, np.float32))
    workspace.FeedBlob("n", np.array([0]))
    with pytest.raises(EnforceNotMet, match="begin at iteration 1"):
        workspace.RunNet(net)
    assert workspace.FetchBlob("rate") == 7


def test_a_size_that_elements_decide_changes_from_run_to_run() -> None:
    net = core.Net("sized by a value")
    net.OneHot(["i", "size"], "y")
    workspace.FeedBlob("i", np.array([0, 2], np.int64))
    workspace.FeedBlob("size", np.array([3], np.int64))
    workspace.CreateNet(net)
    for size in (3, 3, 3, 5, 5, 3, 3):
        workspace.FeedBlob("size", np.array([size], np.int64))
        workspace.RunNet(net)
        np.testing.assert_array_equal(workspace.FetchBlob("y"), np.eye(size)[[0, 2]])
    before = workspace.FetchTorch("y").data_ptr()
    workspace.RunNet(net)
    assert workspace.FetchTorch("y").data_ptr() == before
    workspace.FeedBlob("i", np.array([0, 3], np.int64))
    with pytest.raises(EnforceNotMet, match="out of range"):
        workspace.RunNet(net)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), np.eye(3)[[0, 2]])


def test_an_output_that_is_named_twice_has_the_last_value_in_every_run() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    workspace.FeedBlob("x", x)
    net = core.Net("twice")
    net.TopK("x", ["y", "indices", "y"], k=2)
    workspace.CreateNet(net)
    for _ in range(4):
        workspace.RunNet(net)
        assert workspace.FetchBlob("y").tolist() == [5, 4, 11, 10, 17, 16, 23, 22]
        assert workspace.FetchBlob("indices").tolist() == [[5, 4]] * 4


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("start", [0, 1, 4])
@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize(
    ("op_type", "outputs"),
    [("MatMul", ["y"]), ("Add", ["y"]), ("Sigmoid", ["y"]), ("Split", ["y", "z"])],
)
def test_an_output_in_the_memory_of_an_input_has_the_same_values_in_every_run(
    op_type: str, outputs: list[str], later: bool, start: int, once: bool
) -> None:
    inputs = ["x", "w"] if op_type in ("MatMul", "Add") else ["x"]
    op = core.CreateOperator(op_type, inputs, outputs, axis=0)
    net = core.Net("shared")
    net.Proto().op.append(op)
    x, w = torch.randn(6, 6), torch.randn(6, 6)
    for name, tensor in (("x", x), ("w", w)):
        workspace.FeedBlob(name, tensor.clone())
    workspace.CreateNet(net)
    run = (lambda: workspace.RunOperatorOnce(op)) if once else (lambda: workspace.RunNet(net))
    run()
    expected = [workspace.FetchBlob(name) for name in outputs]
    for _ in range(3 if later else 0):  # the operator is recorded before its blobs share memory
        run()
    memory = torch.zeros(80)
    shared = memory[:36].view(6, 6)
    for number in range(4):
        workspace.FeedBlob("x", shared)
        shared.copy_(x)
        size = expected[0].size
        workspace.FeedBlob("y", memory[start : start + size].view(expected[0].shape))
        if number == 3:
            workspace.FeedBlob("w", w.clone())
        run()
        for name, values in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(workspace.FetchBlob(name), values, rtol=1e-5)


@caffe2.operator("FnInterrupted", types={"counts": (c10.int64,)}, sized_by=("counts",))
def interrupted(x: torch.Tensor, counts: torch.Tensor, *, out: Out = None) -> torch.Tensor:
    """Return the first rows of -x, as many as `counts` says, after what `meanwhile` does."""
    found = torch.neg(x[: counts.tolist()[0]], out=out)
    if meanwhile:
        meanwhile.pop()()
    return found


meanwhile: list[Callable[[], object]] = []


@pytest.mark.parametrize("name", ["x", "counts", "y"])
@pytest.mark.parametrize("before", range(3))
def test_a_blob_fed_by_another_thread_in_a_run_does_not_spoil_later_runs(
    name: str, before: int
) -> None:
    net = core.Net("interrupted")
    net.FnInterrupted(["x", "counts"], "y")
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    others = {"x": x[:, :2], "counts": np.array([4]), "y": x}
    for blob, value in {"x": x, "counts": np.array([2])}.items():
        workspace.FeedBlob(blob, value)
    workspace.CreateNet(net)
    for _ in range(before):
        workspace.RunNet(net)
    meanwhile.append(lambda: workspace.FeedBlob(name, others[name]))
    workspace.RunNet(net)
    meanwhile.clear()
    for i in range(12):
        given, count = x[:, : 2 + i % 2], 2 + i // 3 % 3
        workspace.FeedBlob("x", given)
        workspace.FeedBlob("counts", np.array([count]))
        workspace.RunNet(net)
        np.testing.assert_array_equal(workspace.FetchBlob("y"), -given[:count])
