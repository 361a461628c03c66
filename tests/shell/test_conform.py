# SPDX-License-Identifier: Apache-2.0
"""``bridge conform``: tables, JSON, exit statuses."""

from __future__ import annotations

import json

import pytest

from bridge.conform import RULES
from bridge.shell.main import main

BROKEN = "consumer-malformed-null-data"  # by NumPy


def test_prints_a_table_and_the_broken_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "numpy", "--rule", "producer-values", "--rule", BROKEN]) == 1
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].startswith("numpy ")
    assert lines[1].split("  ")[0] == "rule"
    assert lines[2].split() == ["producer-values", "ok"]
    assert lines[3].split()[:2] == [BROKEN, "broken"]
    rule = next(rule for rule in RULES if rule == BROKEN)
    assert rule.text in out
    assert rule.source in out
    assert "np.from_dlpack" in out


def test_ends_with_0_where_nothing_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "numpy", "bridge", "--rule", "producer-values"]) == 0
    assert "0 of 1 rules broken" in capsys.readouterr().out


def test_prints_results_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conform", "numpy", "--rule", "producer-values", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["libraries"]
    (library,) = found["libraries"]
    assert library["name"] == "numpy"
    assert [one["rule"] for one in library["results"]] == ["producer-values"]


def test_prints_pairs_of_producers_and_consumers(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["conform", "numpy", "bridge", "--rule", "producer-values", "--pairs"]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["pairs"]) == 4
    assert set(found["pairs"][0]) == {
        *("producer", "consumer", "outcome", "values", "bytes_before", "bytes_after"),
        *("deleters", "seen"),
    }
    assert main(arguments) == 0
    assert "bytes before" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["numpy", "--rule", "no-rule"], ["mindspore"], ["--rule"]]
)
def test_wrong_use_is_one_line_and_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["conform", *arguments]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "Traceback" not in err
