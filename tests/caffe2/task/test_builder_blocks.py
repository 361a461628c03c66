# SPDX-License-Identifier: Apache-2.0
"""Builders of nets: what their blocks compute, where they end, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.net_builder import NetBuilder, ops
from bridge.caffe2.task import Node, Task, TaskGroup

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def run(builder: NetBuilder, *blobs: Any) -> list[Any]:
    plan = core.Plan("of_builder")
    plan.AddStep(core.to_execution_step(builder))
    workspace.RunPlan(plan)
    return [workspace.FetchBlob(blob).item() for blob in blobs]


def test_loops_run_until_they_stop_or_a_number_of_times() -> None:
    with NetBuilder() as builder:
        left, ran, rounds = ops.Const(3), ops.Const(0), ops.Const(0)
        with ops.loop():
            ops.stop_if(ops.EQ([left, ops.Const(0)]))
            ops.Add([left, ops.Const(-1)], [left])
            ops.Add([ran, ops.Const(1)], [ran])
        with ops.loop(2) as outer, ops.loop(ops.Add([outer.iter(), ops.Const(1)])):
            ops.Add([rounds, ops.Const(1)], [rounds])
        with ops.loop(0):
            ops.Add([rounds, ops.Const(100)], [rounds])
    assert run(builder, ran, rounds) == [3, 3]


def test_guards_tell_whether_a_block_stopped() -> None:
    with NetBuilder() as builder:
        after = ops.Const(0)
        with ops.stop_guard() as stops:
            ops.stop_if(ops.Const(True))
            ops.Const(1, blob_out=after)
        with ops.stop_guard() as passes:
            ops.stop_if(ops.Const(False))
        with ops.stop_guard() as empty:
            pass
        with pytest.raises(AssertionError, match="not used yet"):
            ops.stop_guard().has_stopped()
    found = run(builder, stops.has_stopped(), passes.has_stopped(), empty.has_stopped(), after)
    assert found == [True, False, False, 0]


@pytest.mark.parametrize(("value", "branch"), [(9, 1), (5, 2), (1, 3)])
def test_one_block_of_a_chain_runs(value: int, branch: int) -> None:
    with NetBuilder() as builder:
        x, taken = ops.Const(value), ops.Const(0)
        with ops.If(ops.GE([x, ops.Const(8)])) as chain:
            ops.Const(1, blob_out=taken)
            ops.stop()
            ops.Const(100, blob_out=taken)
        with chain.Elif(ops.GE([x, ops.Const(4)])) as chain:
            ops.Const(2, blob_out=taken)
        with chain.Else() as last:
            ops.Const(3, blob_out=taken)
        with pytest.raises(AssertionError, match="Nothing follows an Else"):
            last.Else()
    assert run(builder, taken) == [branch]


def test_conditions_and_loops_are_operators_of_one_net() -> None:
    with NetBuilder(_use_control_ops=True) as builder:
        x, y, seen = ops.Const(0), ops.Const(0), ops.Const(0)
        with ops.WhileNet():
            with ops.Condition():
                ops.Add([x, ops.Const(1)], [x])
                ops.LT([x, ops.Const(7)])
            ops.Add([x, y], [y])
            with ops.IfNet(ops.EQ([x, ops.Const(3)])):
                ops.Const(1, blob_out=seen)
            with ops.Else():
                ops.Add([seen, ops.Const(10)], [seen])
    (net,) = builder.get()
    assert [op.type for op in net.Proto().op].count("While") == 1
    assert not net.Proto().external_output  # nothing is outside of the builder
    assert run(builder, x, y, seen) == [7, 21, 31]


def test_nets_are_named_after_the_open_builder() -> None:
    assert core.Net.current_prefix() == ""
    with NetBuilder("outer_b"), NetBuilder("inner_b") as inner:
        assert core.Net.current_prefix() == inner.name == "outer_b/inner_b"
        assert core.Net("named_in_it").Name() == "outer_b/inner_b/named_in_it"
        assert ops.net(name="third").Name() == "outer_b/inner_b/third"
    assert core.Net.current_prefix() == ""
    with NetBuilder("outer_b"), NetBuilder(_fullname="whole") as whole:
        assert whole.name == "whole"


def test_a_net_may_run_several_times_and_a_group_of_tasks_be_a_step() -> None:
    net = core.Net("added_twice")
    with NetBuilder() as builder:
        total = ops.Const(0)
        net.Add([total, net.Const(1)], [total])
        assert ops.net(net) is net is ops.net(net)
        with ops.task_group(), Node("elsewhere"), Task():
            ops.Add([total, ops.Const(10)], [total])
    assert isinstance(builder.get()[-1], TaskGroup)
    assert run(builder, total) == [12]


def test_blocks_in_wrong_places_are_refused() -> None:
    assert not hasattr(ops, "Const")
    with pytest.raises(AssertionError, match="No NetBuilder is active"):
        ops.net()
    with NetBuilder() as builder:
        with pytest.raises(AssertionError, match="requires a stop condition"), ops.loop():
            ops.Const(1)
        with pytest.raises(AssertionError, match="does not have a number"):
            NetBuilder.current()._children[-1].iter()
        with pytest.raises(AssertionError, match="Else follows IfNet"):
            ops.Else()
        with pytest.raises(AssertionError, match="Condition outside of WhileNet"):
            ops.Condition()
        with pytest.raises(AssertionError, match="Condition builder must be specified"):
            with_block(ops.WhileNet())
        with pytest.raises(AssertionError, match="has one output"), ops.WhileNet():
            with_block(ops.Condition())
    with pytest.raises(AssertionError, match="built already"):
        builder.add(core.Net("late"))
    with NetBuilder(_use_control_ops=True) as builder:
        pass
    with pytest.raises(AssertionError, match="not used with control operators"):
        builder.stop_if("x")


def with_block(block: NetBuilder) -> None:
    with block:
        pass
