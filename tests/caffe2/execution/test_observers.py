# SPDX-License-Identifier: Apache-2.0
"""Observers of nets; the texts and numbers are those of the real Caffe2 (PyTorch 1.8.1)."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def created(name: str = "observed", kind: str = "") -> core.Net:
    net = core.Net(name)
    net.Relu("x", "y")
    net.Relu("x", "z")
    net.Copy("z", "w")
    net.Proto().type = kind
    workspace.FeedBlob("x", np.zeros(3, np.float32))
    workspace.CreateNet(net)
    return net


def test_times_are_of_the_net_and_of_its_operators() -> None:
    net = created()
    observer = net.AddObserver("TimeObserver")
    assert math.isnan(observer.average_time())
    assert math.isnan(observer.average_time_children())
    workspace.RunNet(net, 3)
    assert 0 < 3 * observer.average_time_children() < observer.average_time()
    assert observer.debug_info() == "Not implemented."


@pytest.mark.parametrize("kind", ["", "dag", "async_scheduling", "compiled"])
def test_runs_of_operators_are_counted(kind: str) -> None:
    net = created(kind=kind)
    workspace.RunNet(net)
    observer = net.AddObserver("RunCountObserver")
    assert observer.debug_info() == "This operator runs 0 times."
    workspace.RunNet(net)
    workspace.RunNet(net, 3)
    assert observer.debug_info() == "This operator runs 12 times."
    with pytest.raises(EnforceNotMet, match="does not implement this function"):
        observer.average_time()
    with pytest.raises(EnforceNotMet, match="does not implement this function"):
        observer.average_time_children()


def test_an_operator_that_fails_counts() -> None:
    net = core.Net("fails")
    name = net.Name()
    net.Relu("x", "y")
    net.Add(["x", "bad"], "z")
    net.Relu("x", "w")
    workspace.FeedBlob("x", np.zeros(3, np.float32))
    workspace.FeedBlob("bad", np.zeros(7, np.float32))
    workspace.CreateNet(net)
    counts, times = net.AddObserver("RunCountObserver"), net.AddObserver("TimeObserver")
    with pytest.raises(EnforceNotMet, match=f"position 1 of net {name!r}"):
        workspace.RunNet(net)
    assert counts.debug_info() == "This operator runs 2 times."
    assert times.average_time() == 0


def test_a_removed_observer_sees_no_more() -> None:
    net, other = created("one"), created("two")
    first, second = net.AddObserver("RunCountObserver"), net.AddObserver("RunCountObserver")
    assert net.NumObservers() == 2
    other.RemoveObserver(first)  # of another net: nothing happens
    net.RemoveObserver(first)
    net.RemoveObserver(first)
    workspace.RunNet(net)
    assert net.NumObservers() == 1
    assert first.debug_info() == "This operator runs 0 times."
    assert second.debug_info() == "This operator runs 3 times."
    net.RemoveObserver(second)
    assert net.NumObservers() == 0
    workspace.RunNet(net)
    assert second.debug_info() == "This operator runs 3 times."
    net.AddObserver("TimeObserver")
    workspace.CreateNet(net, overwrite=True)
    assert net.NumObservers() == 0


def test_errors_name_the_wrong_argument() -> None:
    with pytest.raises(EnforceNotMet, match="no net 'absent'"):
        core.Net("absent").AddObserver("TimeObserver")
    net = created()
    with pytest.raises(EnforceNotMet, match="no kind of observer 'FlopsObserver'"):
        net.AddObserver("FlopsObserver")
    assert net.NumObservers() == 0


def test_the_extension_has_its_names() -> None:
    c = workspace.C
    name = created().Name()
    observer = c.add_observer_to_net(name, "TimeObserver")
    assert isinstance(observer, c.Observer)
    assert c.num_observers_on_net(name) == 1
    c.remove_observer_from_net(name, observer)
    assert c.num_observers_on_net(name) == 0
    assert c.clear_global_net_observer() is None


def test_profiles_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    net = created()
    net.AddObserver("ProfileObserver")
    with caplog.at_level(logging.INFO, "bridge.caffe2.execution.observers"):
        workspace.RunNet(net)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "--------- Starting operator Relu op#0 ---------"
    assert lines[1].startswith("Input 0: ")
    assert "'x'" in lines[1]
    assert lines[-1].startswith("--------- Finished operator Copy in ")


def test_counters_of_the_process_are_stats() -> None:
    net = core.Net("counted")
    net.CreateMutex([], "mutex")
    net.ConstantFill([], "counted_n", shape=[1], value=0, dtype=core.DataType.INT64)
    net.AtomicIter(["mutex", "counted_n"], "counted_n")
    workspace.RunNetOnce(net)
    assert workspace.GetStats()["atomic_iter/stats/counted_n/num_iter"] == 1
