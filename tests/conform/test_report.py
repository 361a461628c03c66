# SPDX-License-Identifier: Apache-2.0
"""Reports: their lists, their dictionary, their text."""

from __future__ import annotations

import json

import pytest

from bridge.conform import RULES, Report, Result


def report() -> Report:
    outcomes = ("ok", "broken", "crash", "hang", "n/a")
    results = [
        Result(rule, outcome, "" if outcome == "ok" else f"seen {outcome}", "x = 1\n")
        for rule, outcome in zip(RULES, outcomes, strict=False)
    ]
    return Report("a library", "1.2", results)


def test_each_result_is_in_one_list() -> None:
    one = report()
    assert [r.outcome for r in one.broken] == ["broken", "crash", "hang"]
    assert [r.outcome for r in one.ok] == ["ok"]
    assert [r.outcome for r in one.skipped] == ["n/a"]


def test_to_dict_is_fit_for_json() -> None:
    found = json.loads(json.dumps(report().to_dict()))
    assert (found["name"], found["version"]) == ("a library", "1.2")
    assert found["results"][1] == {
        "rule": RULES[1].id,
        "role": RULES[1].role,
        "outcome": "broken",
        "text": RULES[1].text,
        "source": RULES[1].source,
        "level": RULES[1].level,
        "seen": "seen broken",
        "program": "x = 1\n",
    }


def test_assert_ok_names_the_broken_rules() -> None:
    with pytest.raises(AssertionError) as error:
        report().assert_ok()
    text = str(error.value)
    assert RULES[1].text in text
    assert "seen crash" in text
    assert "x = 1" in text
    assert RULES[4].text not in text


def test_assert_ok_is_silent_where_nothing_is_broken() -> None:
    Report("a", None, [Result(RULES[0], "ok")]).assert_ok()
