# SPDX-License-Identifier: Apache-2.0
"""bridge caffe2 draw: nets as SVG."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bridge.caffe2 import core
from bridge.caffe2.core.net_picture import net_picture
from bridge.shell.main import main

PREDICTOR = str(Path(__file__).parents[1] / "golden" / "predictor.mdl")
SVG = "{http://www.w3.org/2000/svg}"


def branches() -> core.Net:
    net = core.Net("branches")
    net.Conv(["data", "w", "b"], "c", kernel=3)
    for i in range(4):
        net.Relu("c", f"r{i}")
    net.Sigmoid("r3", "s & <t>")
    net.Concat(["r0", "r1", "r2", "s & <t>", "c"], ["y", "split"], axis=1)
    net.Proto().external_output.append("y")
    return net


@pytest.fixture(params=["igraph", "none"])
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw with igraph and without it."""
    if request.param == "none":
        monkeypatch.setitem(sys.modules, "igraph", None)
    else:
        pytest.importorskip("igraph")


@pytest.mark.usefixtures("layout")
def test_a_predictor_export_is_drawn(tmp_path: Path) -> None:
    target = tmp_path / "net.svg"
    target.write_text("before")
    assert main(["caffe2", "draw", PREDICTOR, "-o", str(target)]) == 0
    texts = [one.text for one in ElementTree.parse(target).iter(f"{SVG}text")]
    assert {"data", "FC", "Relu", "Softmax", "prob", "fc1_w, fc1_b"} <= set(texts)


@pytest.mark.usefixtures("layout")
def test_boxes_do_not_overlap_and_lines_join_them() -> None:
    root = ElementTree.fromstring(net_picture(branches().Proto(), "a title"))
    boxes = [
        tuple(float(one.get(key, "0")) for key in ("x", "y", "width", "height"))
        for one in root.findall(f"{SVG}rect")[1:]
    ]
    assert len(boxes) == 9  # 7 operators, an input and an output
    for (x, y, w, h), (x2, y2, w2, h2) in combinations(boxes, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y
    assert len(root.findall(f"{SVG}path")) == 12
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    assert all(x >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    assert any(one.text == "s & <t>" for one in root.iter(f"{SVG}text"))


@pytest.mark.usefixtures("layout")
def test_a_net_without_operators_is_drawn() -> None:
    ElementTree.fromstring(net_picture(core.Net("empty").Proto(), "empty"))


@pytest.mark.usefixtures("layout")
def test_a_net_draws_itself_in_a_notebook() -> None:
    net = branches()
    texts = [one.text for one in ElementTree.fromstring(net._repr_svg_()).iter(f"{SVG}text")]
    assert {net.Name(), "Conv", "Relu", "Concat", "y"} <= set(texts)
