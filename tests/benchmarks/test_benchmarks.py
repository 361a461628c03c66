# SPDX-License-Identifier: Apache-2.0
"""The benchmarks run, each for one round, and their harness tells fast from slow."""

from __future__ import annotations

import importlib
import math
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from bridge.caffe2 import core, workspace
from tests.benchmarks import libraries, memory, memory_probe, real_caffe2
from tests.benchmarks.__main__ import GROUPS, insert, merged
from tests.benchmarks.harness import SMOKE, Effort, Outcome, Row, compare, loop, table
from tests.benchmarks.memory_probe import growth
from tests.benchmarks.zoo_weights import weights

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_runs_and_has_rows(group: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # An interpreter for each framework is what its figures need, not what its statements need.
    monkeypatch.setattr(memory, "probe", memory_probe.report)
    rows = list(importlib.import_module(f"tests.benchmarks.{group}").rows(SMOKE))
    if group in ("real_caffe2", "operators") and not os.environ.get(real_caffe2.VARIABLE):
        assert rows == []
        return
    if group == "libraries" and not any(map(find_spec, libraries.LIBRARIES)):
        pytest.skip("none of the libraries is installed")
    assert rows
    for row in rows:
        assert math.isfinite(row.outcome.figure)
        assert 0 <= row.goal <= row.must


def test_memory_is_measured_in_another_process() -> None:
    assert math.isfinite(memory.probe("held", "bridge", "100"))


def test_ratio_is_ours_over_theirs() -> None:
    effort = Effort(rounds=9, seconds=0.001)
    fast, slow = loop("sum(few)", few=range(10)), loop("sum(many)", many=range(1000))
    assert compare(fast, slow, effort).figure < 0.5
    assert compare(slow, fast, effort).figure > 2


def test_time_spent_before_is_not_counted() -> None:
    waits: list[None] = []
    timer = loop("None", before=lambda: [waits.append(None) for _ in range(200_000)])
    # the best of a few, since the process may be interrupted at any moment
    assert min(timer(10) for _ in range(3)) < 1e-4
    assert len(waits) == 600_000


def test_growth_measures_the_memory_that_stays() -> None:
    kept: list[bytes] = []
    # Far more than what may lie about freed, from whatever ran in this process before.
    grown = growth(10_000, ["kept.append(bytes(8000))", "bytes(8000)"], {"kept": kept})
    leaking, clean = grown.values()
    assert leaking > 30_000_000
    assert clean < 1_000_000


@pytest.mark.parametrize(
    ("figure", "verdict"), [(0.1, "goal"), (0.2, "goal"), (0.3, "must"), (0.41, "MISSED")]
)
def test_a_row_is_judged_by_its_bounds(figure: float, verdict: str) -> None:
    row = Row("ours", "theirs", 0.4, 0.2, Outcome(figure, "1 ns", "2 ns"))
    assert row.verdict == verdict
    assert table([row]).splitlines()[-1].endswith(f"| 0.4 | 0.2 | {verdict} |")


def test_a_row_without_bounds_has_no_verdict() -> None:
    row = Row("ours", "theirs", math.inf, math.inf, Outcome(3, "1 ns", "2 ns"))
    assert table([row]).splitlines()[-1].endswith("| 3 |  |  |  |")


def test_weights_fit_the_graph() -> None:
    net = core.Net("graph")
    net.Conv(["data", "w1", "b1"], "a", kernel=3, pad=1)
    net.Conv(["a", "w2"], "b", kernel=3, pad=1, group=12)  # decides how many channels `a` has
    net.Sum(["b", "a"], "b")
    net.SpatialBN(["b", "s", "o", "m", "v"], "b", is_test=1)
    net.Concat(["a", "b"], ["c", "sizes"], axis=1)
    net.FC(["c", "w3", "b3"], "y")
    found = weights(net.Proto(), side=4)
    shapes = {name: value.shape for name, value in found.items()}
    assert shapes["data"] == (1, 3, 4, 4)
    assert shapes["w1"] == (12, 3, 3, 3)
    assert shapes["w2"] == (12, 1, 3, 3)
    assert shapes["v"] == (12,)
    assert shapes["w3"] == (8, 2 * 12 * 4 * 4)
    workspace.ResetWorkspace()
    for name, value in found.items():
        workspace.FeedBlob(name, value)
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("y").shape == (1, 8)


def test_table_goes_between_the_markers(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("a\n<!-- figures -->\nold\n<!-- figures -->\nb\n")
    insert(readme, "new")
    insert(readme, "newer")
    assert readme.read_text() == "a\n<!-- figures -->\nnewer\n<!-- figures -->\nb\n"
    readme.write_text("nothing here\n")
    with pytest.raises(SystemExit, match="no place"):
        insert(readme, "new")


def test_rows_of_chosen_groups_take_the_place_of_their_former_figures(tmp_path: Path) -> None:
    def rows(**figures: float) -> str:
        return table(
            Row(what, "theirs", 2, 1, Outcome(figure, "1 ns", "2 ns"))
            for what, figure in figures.items()
        )

    readme = tmp_path / "README.md"
    readme.write_text(f"a\n<!-- figures -->\n{rows(x=1, y=2)}\n<!-- figures -->\nb\n")
    assert merged(readme, rows(y=3, z=4)) == rows(x=1, y=3, z=4)
