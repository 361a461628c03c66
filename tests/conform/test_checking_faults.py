# SPDX-License-Identifier: Apache-2.0
"""Each planted fault is found, by a rule that says so; its program shows it."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from bridge.conform import RULES, check
from bridge.conform.isolation import isolated
from tests.conform.faults import CONSUMER, PRODUCER, TABLE
from tests.conform.subjects import Subject, TableSubject, faults

CASES = [
    pytest.param(kind, fault, rules, id=f"{kind.__name__}-{fault}")
    for kind, table in ((Subject, PRODUCER), (Subject, CONSUMER), (TableSubject, TABLE))
    for fault, rules in table.items()
]


def claims(program: str, subject: Any) -> Any:
    """Return the exit status, or text, of a program; None: it ended, or the subject refused."""

    def run() -> Any:
        try:
            exec(program, {"__name__": "__main__", "subject": subject})
        except SystemExit as exit_:
            return exit_.code
        except Exception:  # noqa: BLE001  whatever it refuses with
            return None
        return None

    return isolated(run)[1]


@pytest.mark.parametrize(("kind", "fault", "rules"), CASES)
def test_a_planted_fault_is_found(kind: Any, fault: str, rules: str) -> None:
    with faults(fault):
        report = check(kind(), rules.split())
    assert [one.rule for one in report.broken] == [rule for rule in RULES if rule in rules.split()]
    for one in report.broken:
        assert one.seen
        assert "alone" not in one.seen, "the program shows it"
        assert one.program is not None
        imported = {
            alias.name
            for node in ast.walk(ast.parse(one.program))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert not [name for name in imported if name.startswith("bridge")]
        # A library that does it right shows nothing.
        assert claims(one.program, kind()) in (None, 0)
    with pytest.raises(AssertionError, match=report.broken[0].rule):
        report.assert_ok()


def test_a_crash_and_an_exit_are_results() -> None:
    for fault, rule in (("import-crashes", "crash"), ("import-exits", "crash")):
        with faults(fault):
            report = check(Subject(), ["consumer-values", "producer-values"])
        assert [one.outcome for one in report.results] == ["ok", rule]


def test_a_refusal_is_not_held_against_a_subject() -> None:
    class Refuses(Subject):
        def make(self, array: Any) -> Any:
            raise TypeError("not today")

    report = check(Refuses(), [rule for rule in RULES if rule.role == "producer"])
    assert not report.broken
    assert any("not today" in one.seen for one in report.skipped)
