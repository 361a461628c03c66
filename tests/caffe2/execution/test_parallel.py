# SPDX-License-Identifier: Apache-2.0
"""Nets and steps that run operators in several threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

TYPES = ["dag", "async_scheduling", "parallel"]
LONG = 60  # seconds; what should happen at once happens long before


def created(kind: str, *operators: tuple[Any, ...], workers: int = 2) -> core.Net:
    net = core.Net("net")
    net.Proto().type = kind
    net.Proto().num_workers = workers
    for op_type, inputs, outputs, *arguments in operators:
        made = core.CreateOperator(op_type, inputs, outputs, **dict(*arguments))
        net.Proto().op.append(made)
    workspace.CreateNet(net)
    return net


class Meeting:
    """Functions for operators that wait for each other."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties)
        self.threads: set[int] = set()

    def __call__(self, inputs: Any, outputs: Any) -> None:
        self.barrier.wait(LONG)
        self.threads.add(threading.get_ident())


@pytest.mark.parametrize("kind", TYPES)
def test_independent_operators_run_at_once(kind: str) -> None:
    meeting = Meeting(2)
    net = core.Net("net")
    net.Proto().type, net.Proto().num_workers = kind, 2
    net.Python(meeting)([], ["a"])
    net.Python(meeting)([], ["b"])
    workspace.CreateNet(net)
    for _ in range(3):
        workspace.RunNet(net)
    assert len(meeting.threads) >= 2


@pytest.mark.parametrize("kind", [*TYPES, "simple", "compiled"])
def test_control_inputs_order_operators(kind: str) -> None:
    made: list[str] = []
    begun = threading.Event()

    def slow(inputs: Any, outputs: Any) -> None:
        begun.wait(0.2)  # an operator that does not wait for this one sets it
        made.append("a")

    def control(inputs: Any, outputs: Any) -> None:
        made.append("b")
        begun.set()

    def overwrite(inputs: Any, outputs: Any) -> None:
        made.append("c")
        begun.set()

    workspace.FeedBlob("x", np.ones(1, np.float32))
    net = core.Net("net")
    net.Proto().type, net.Proto().num_workers = kind, 3
    net.Python(slow)([], ["a"])
    net.Python(control)(["x"], ["b"], control_input=["a", "fed"])
    net.Python(overwrite)([], ["a"])  # after what waits for the former value
    workspace.CreateNet(net)
    for _ in range(3):
        begun.clear()
        workspace.RunNet(net)
    assert made == ["a", "b", "c"] * 3


def test_no_more_operators_run_at_once_than_workers() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def count(inputs: Any, outputs: Any) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.01)
        with lock:
            now[0] -= 1

    net = core.Net("net")
    net.Proto().type, net.Proto().num_workers = "dag", 2
    for i in range(8):
        net.Python(count)([], [f"y{i}"])
    workspace.RunNetOnce(net)
    assert 1 <= most[0] <= 2


def random_graph(random: np.random.Generator, length: int) -> list[tuple[Any, ...]]:
    """Operators on few names, many of them in place: each name is written again and again."""
    names = [f"n{i}" for i in range(5)]
    operators: list[tuple[Any, ...]] = []
    for _ in range(length):
        a, b, c = (names[i] for i in random.permutation(len(names))[:3])
        kind = random.integers(0, 4)
        if kind == 0:
            operators.append(("Sub", [a, b], [c]))
        elif kind == 1:
            operators.append(("Tanh", [a], [a]))
        elif kind == 2:
            operators.append(("Scale", [a], [c], {"scale": 0.5}))
        else:
            operators.append(("Sum", [a, b], [a]))
    return operators


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_compute_what_they_compute_in_order(seed: int) -> None:
    random = np.random.default_rng(seed)
    operators = random_graph(random, 60)
    start = {f"n{i}": random.normal(size=(4, 4)).astype(np.float32) for i in range(5)}
    found = []
    for kind in ("simple", "dag"):
        workspace.ResetWorkspace()
        for name, value in start.items():
            workspace.FeedBlob(name, value)
        net = created(kind, *operators, workers=4)
        net.Python(lambda inputs, outputs: None)([], ["beside"])  # so that threads are needed
        workspace.CreateNet(net, overwrite=True)
        for _ in range(3):
            workspace.RunNet(net)
        found.append({name: workspace.FetchBlob(name) for name in start})
    for name, value in found[0].items():
        np.testing.assert_array_equal(found[1][name], value)


def test_an_error_ends_the_run_with_no_thread_at_work() -> None:
    running = threading.Event()
    done = []

    def fail(inputs: Any, outputs: Any) -> None:
        running.wait(LONG)
        raise ValueError("the reason")

    def slow(inputs: Any, outputs: Any) -> None:
        running.set()
        threading.Event().wait(0.2)
        done.append(1)

    net = core.Net("net")
    net.Proto().type, net.Proto().num_workers = "dag", 2
    net.Python(slow)([], ["a"])
    net.Python(fail)([], ["b"])
    net.Python(lambda i, o: done.append(2))(["a"], ["c"])
    workspace.CreateNet(net)
    with pytest.raises(c10.EnforceNotMet, match=r"position 1.*(?s:.*)the reason"):
        workspace.RunNet(net)
    assert done == [1]


def test_concurrent_substeps_run_at_once() -> None:
    meeting = Meeting(2)
    nets = []
    for i in range(2):
        net = core.Net(f"net{i}")
        net.Python(meeting)([], [f"y{i}"])
        nets.append(net)
    steps = [core.execution_step(f"s{i}", net) for i, net in enumerate(nets)]
    plan = core.Plan("plan")
    plan.AddStep(core.execution_step("both", steps, concurrent_substeps=True, num_iter=2))
    workspace.RunPlan(plan)
    assert len(meeting.threads) >= 2


def test_an_error_in_a_concurrent_substep_is_raised() -> None:
    good, bad = core.Net("good"), core.Net("bad")
    good.ConstantFill([], "g", shape=[1])
    bad.MatMul(["g2", "g2"], "h")
    workspace.FeedBlob("g2", np.ones((2, 3), np.float32))
    plan = core.Plan("plan")
    steps = [core.execution_step("a", good), core.execution_step("b", bad)]
    plan.AddStep(core.execution_step("both", steps, concurrent_substeps=True))
    with pytest.raises(c10.EnforceNotMet, match="MatMul"):
        workspace.RunPlan(plan)


def queue_nets() -> tuple[core.Net, core.Net]:
    """Create a queue; return a net that takes a record and one that puts one."""
    init = core.Net("init")
    init.CreateBlobsQueue([], "queue", capacity=1, num_blobs=1)
    workspace.RunNetOnce(init)
    consumer, producer = core.Net("consumer"), core.Net("producer")
    consumer.DequeueBlobs(["queue"], ["taken"])
    producer.ConstantFill([], "given", shape=[1], value=3.0)
    producer.EnqueueBlobs(["queue", "given"], ["given"])
    return consumer, producer


def concurrently(*steps: object) -> core.Plan:
    plan = core.Plan("plan")
    plan.AddStep(core.execution_step("all", list(steps), concurrent_substeps=True))
    return plan


@pytest.mark.parametrize("own_workspace", [False, True])
def test_a_consumer_may_stand_before_its_producer(own_workspace: bool) -> None:
    consumer, producer = queue_nets()
    step = core.execution_step("take", consumer, num_iter=3, create_workspace=own_workspace)
    assert workspace.RunPlan(concurrently(step, core.execution_step("put", producer, num_iter=3)))
    assert own_workspace or workspace.FetchBlob("taken").tolist() == [3.0]


@pytest.mark.parametrize("own_workspace", [False, True])
def test_a_step_that_fails_ends_those_that_wait(own_workspace: bool) -> None:
    consumer, _ = queue_nets()
    endless = core.Net("endless")
    endless.ConstantFill([], "c", shape=[1])
    workspace.FeedBlob("stop", np.array(False))
    failing = core.Net("failing")
    failing.MatMul(["a", "b"], "c2")
    for name in ("a", "b"):
        workspace.FeedBlob(name, np.zeros((2, 3), np.float32))
    steps = [
        core.execution_step("take", consumer, create_workspace=own_workspace),
        core.execution_step("loop", endless, should_stop_blob=core.BlobReference("stop")),
        core.execution_step("fail", failing),
    ]
    with pytest.raises(c10.EnforceNotMet, match="inner sizes"):
        workspace.RunPlan(concurrently(*steps))
