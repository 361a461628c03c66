# SPDX-License-Identifier: Apache-2.0
"""Execution steps that loop and branch; what runs how often is that of the real Caffe2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import control, core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

INT64, BOOL = core.DataType.INT64, core.DataType.BOOL


class Program:
    """Nets that count their runs, and conditions on the counts."""

    def __init__(self) -> None:
        self.init = core.Net("init")
        for name, value in (("zero", 0), ("one", 1), ("five", 5), ("a", 0), ("b", 0)):
            self.init.ConstantFill([], name, shape=[], value=value, dtype=INT64)
        for name, value in (("yes", True), ("no", False)):
            self.init.ConstantFill([], name, shape=[], value=value, dtype=BOOL)
        self.a, self.b = (self.counting(name) for name in ("a", "b"))
        self.less = self.condition("LT", "a", "five")
        self.enough = self.condition("GE", "a", "five")
        self.true = self.condition("LT", "zero", "one")
        self.false = self.condition("GT", "zero", "one")

    @staticmethod
    def counting(name: str) -> core.Net:
        net = core.Net(f"count_{name}")
        net.Add([name, "one"], name)
        return net

    @staticmethod
    def condition(relation: str, *blobs: str) -> core.Net:
        net = core.Net("condition")
        net.AddExternalOutput(getattr(net, relation)(list(blobs)))
        return net

    def run(self, *steps: Any) -> tuple[int, int]:
        """Run steps; return how often `a` and `b` ran."""
        plan = core.Plan("plan")
        for step in (control.Do("init", self.init), *steps):
            plan.AddStep(step)
        assert workspace.RunPlan(plan)
        return tuple(int(workspace.FetchBlob(name)) for name in ("a", "b"))  # type: ignore[return-value]


@pytest.fixture
def program() -> Program:
    return Program()


LOOPS: list[tuple[Callable[[Program, Any], Any], int]] = [
    (lambda p, body: control.For("for", body, 5), 5),
    (lambda p, body: control.While("while", p.less, body), 5),
    (lambda p, body: control.Until("until", p.enough, body), 5),
    (lambda p, body: control.DoWhile("do_while", p.less, body), 5),
    (lambda p, body: control.DoUntil("do_until", p.enough, body), 5),
    (lambda p, body: control.DoWhile("once", p.false, body), 1),
    (lambda p, body: control.DoUntil("once", p.true, body), 1),
    (lambda p, body: control.While("never", p.false, body), 0),
    (lambda p, body: control.While("never", "no", body), 0),
    (lambda p, body: control.Until("never", "yes", body), 1),
    (lambda p, body: control.DoUntil("never", "yes", body), 1),
]


@pytest.mark.parametrize(("loop", "times"), LOOPS, ids=range(len(LOOPS)))
@pytest.mark.parametrize("kind", ["net", "nets", "step"])
def test_loops_run_their_body_as_often_as_caffe2(
    program: Program, loop: Any, times: int, kind: str
) -> None:
    body = {
        "net": program.a,
        "nets": [program.a, core.Net("idle")],
        "step": control.Do("body", program.a),
    }[kind]
    assert program.run(loop(program, body))[0] == times


@pytest.mark.parametrize("on_blob", [False, True])
@pytest.mark.parametrize("as_steps", [False, True])
@pytest.mark.parametrize("holds", [False, True])
def test_branches_run_the_body_that_their_condition_chooses(
    program: Program, on_blob: bool, as_steps: bool, holds: bool
) -> None:
    condition: Any = ("yes" if holds else "no") if on_blob else program.false
    if holds and not on_blob:
        condition = program.true
    a, b = (control.Do("body", net) if as_steps else net for net in (program.a, program.b))
    first, second = (1, 0) if holds else (0, 1)
    assert program.run(control.If("if", condition, a)) == (first, 0)
    assert program.run(control.IfNot("if_not", condition, a)) == (second, 0)
    assert program.run(control.If("if", condition, a, b)) == (first, second)
    assert program.run(control.IfNot("if_not", condition, a, b)) == (second, first)


def test_switches_run_the_first_case_that_holds(program: Program) -> None:
    cases = (program.false, program.a), (program.true, [program.b, program.b])
    assert program.run(control.Switch("switch", *cases)) == (0, 2)
    assert program.run(control.SwitchNot("switch", list(cases))) == (1, 0)


def test_steps_run_in_order_or_concurrently(program: Program) -> None:
    step = control.Do("both", program.a, program.b)
    assert program.run(step, control.Do("same", step)) == (2, 2)
    assert control.Do("same", step) is control.DoParallel("same", step) is step
    parallel = control.DoParallel("parallel", [program.a, program.b])
    assert parallel.Proto().concurrent_substeps
    assert program.run(parallel) == (1, 1)


@pytest.mark.parametrize(("relation", "expected"), [("And", False), ("Or", True)])
def test_conditions_are_combined(program: Program, relation: str, expected: bool) -> None:
    nets = [program.true, program.false]
    combined = control.CombineConditions("combined", nets, relation)
    merged = control.MergeConditionNets("merged", nets, relation)
    assert combined is not None
    program.run(control.Do("all", *nets, combined), control.Do("merged", merged))
    for net in (combined, merged):
        assert bool(workspace.FetchBlob(control.GetConditionBlobFromNet(net))) is expected


def test_one_condition_is_copied_and_none_gives_none(program: Program) -> None:
    single = control.CombineConditions("single", [program.true], "Or")
    assert [op.type for op in single.Proto().op] == ["Copy"]  # type: ignore[union-attr]
    assert control.CombineConditions("none", [], "Or") is None
    assert control.MergeConditionNets("none", [], "Or") is None
    assert control.MergeConditionNets("one", [program.true], "Or") is program.true
    assert control.MergeConditionNets("one", program.true, "Or") is program.true


def test_a_net_sets_conditions(program: Program) -> None:
    net = control.BoolNet([("p", True), ("q", False)])
    program.run(control.Do("set", net))
    assert [bool(workspace.FetchBlob(name)) for name in ("p", "q")] == [True, False]
    not_net, blob = control.NotNet("p")
    workspace.RunNetOnce(not_net)
    assert not workspace.FetchBlob(blob)


def test_names_are_given_once() -> None:
    steps = [control.Do("same", core.Net("n"), core.Net("n")) for _ in range(3)]
    assert len({step.Name() for step in steps}) == 3


def test_nets_and_conditions_that_are_not_fit_are_refused(program: Program) -> None:
    with pytest.raises(EnforceNotMet, match="input cannot be empty") as error:
        control.Do("nothing")
    assert isinstance(error.value, ValueError)
    with pytest.raises(EnforceNotMet, match="at least one external output"):
        control.GetConditionBlobFromNet(program.init)
    with pytest.raises(EnforceNotMet, match="must be a list"):
        control.CombineConditions("net", program.true, "Or")
    program.true.Proto().type = "dag"
    with pytest.raises(EnforceNotMet, match="has a type or a device"):
        control.MergeConditionNets("merged", [program.true, program.false], "Or")
