# SPDX-License-Identifier: Apache-2.0
"""Nets and plans as graphs; the graphs are those of the real Caffe2."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, net_drawer

EMPTY_PNG_SIZE = 67


def net() -> core.Net:
    found = core.Net("drawn")
    found.Relu("x", "y")
    found.Sigmoid("y", "y")
    found.Add(["x", "y"], "z", name="total")
    return found


def test_a_graph_in_json_has_the_nodes_and_edges_of_the_net(tmp_path: Path) -> None:
    net_drawer.GetGraphInJson(net(), str(tmp_path / "net.json"))
    graph = json.loads((tmp_path / "net.json").read_text())
    labels = [node["label"] for node in graph["nodes"]]
    assert labels == ["Relu", "x", "y", "Sigmoid", "y", "total/Add", "z"]
    assert [node.get("op_id") for node in graph["nodes"] if node["type"] == "op"] == [0, 1, 2]
    edges = [(edge["source"], edge["target"]) for edge in graph["edges"]]
    assert edges == [(1, 0), (0, 2), (2, 3), (3, 4), (1, 5), (4, 5), (5, 6)]


def labels_of(graph: Any) -> list[str]:
    return sorted({node.get_name().strip('"') for node in graph.get_nodes()})


def test_graphs_of_a_net_have_its_operators_and_edges() -> None:
    pytest.importorskip("pydot")
    graph = net_drawer.GetPydotGraph(net())
    assert len(graph.get_edges()) == 7
    assert labels_of(graph)[0] == "Relu (op#0)"
    producer = net_drawer.GetOpNodeProducer(True)
    minimal = net_drawer.GetPydotGraphMinimal(net().Proto(), op_node_producer=producer)
    assert labels_of(minimal) == [
        "Relu (op#0)\ny",
        "Sigmoid (op#1)\ny",
        "total/Add (op#2)\nz",
    ]
    assert len(minimal.get_edges()) == 2


def test_implied_edges_are_left_out() -> None:
    pytest.importorskip("pydot")
    found = core.Net("implied")
    found.Relu("x", "a")
    found.Relu("a", "b")
    found.Add(["a", "b"], "c")
    assert len(net_drawer.GetPydotGraphMinimal(found).get_edges()) == 3
    short = net_drawer.GetPydotGraphMinimal(found.Proto().op, minimal_dependency=True)
    assert len(short.get_edges()) == 2


def plan() -> Any:
    steps = [core.execution_step(f"step{number}", net()) for number in range(5)]
    found = core.Plan("plan")
    found.AddStep(core.execution_step("all", steps, concurrent_substeps=True))
    return found.Proto()


def test_a_graph_of_a_plan_says_how_many_steps_it_leaves_out() -> None:
    pytest.importorskip("pydot")
    graph = net_drawer.GetPlanGraph(plan())
    assert "2 more steps" in labels_of(graph)
    empty = core.Plan("empty")
    empty.Proto().execution_step.add(name="nothing")
    with pytest.raises(EnforceNotMet, match="neither nets nor steps"):
        net_drawer.GetPlanGraph(empty.Proto())


def test_operators_of_a_plan_are_named_by_its_nets() -> None:
    operators = net_drawer.GetOperatorMapForPlan(plan())
    assert len(operators) == 5
    assert all(name.startswith("plan_drawn") for name in operators)


def test_a_picture_that_cannot_be_drawn_is_empty() -> None:
    def fail() -> None:
        raise RuntimeError("no graphviz")

    assert len(net_drawer.GetGraphPngSafe(fail)) == EMPTY_PNG_SIZE


def test_graphs_without_pydot_name_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydot", None)
    with pytest.raises(EnforceNotMet, match="pip install pydot"):
        net_drawer.GetPydotGraph(net())
    with pytest.raises(EnforceNotMet, match="Expecting NetDef"):
        net_drawer.GetGraphInJson(core.Plan("plan"), "unused")
