# SPDX-License-Identifier: Apache-2.0
"""`check` of subjects that keep to DLPack: nothing is broken, and each rule has one result."""

from __future__ import annotations

import sysconfig
from typing import Any

import pytest

from bridge.conform import RULES, check
from tests.conform.clean_subjects import CLEAN, OnlyConsumer, OnlyProducer
from tests.conform.subjects import Subject, faults


@pytest.mark.parametrize("kind", CLEAN, ids=lambda kind: kind.__name__)
def test_a_clean_subject_breaks_nothing(kind: Any) -> None:
    report = check(kind())
    report.assert_ok()
    assert [one.rule for one in report.results] == list(RULES)
    assert len(report.ok) + len(report.skipped) == len(RULES)
    assert all(one.seen for one in report.skipped)


def test_missing_parts_skip_the_rules_that_need_them() -> None:
    for kind, role in ((OnlyProducer, "producer"), (OnlyConsumer, "consumer")):
        report = check(kind())
        assert {one.rule.role for one in report.ok} == {role}


def test_a_subject_without_parts_has_only_skipped_rules() -> None:
    report = check(object())
    assert len(report.skipped) == len(RULES)
    assert report.name == "object"


def test_only_the_chosen_rules_are_checked() -> None:
    chosen = [RULES[3].id, RULES[1].id]
    report = check(Subject(), chosen)
    assert sorted(one.rule for one in report.results) == sorted(chosen)


def test_the_result_is_the_same_each_time() -> None:
    with faults("deleter-never", "strides-ignored", "rename-never"):
        reports = [check(Subject()).to_dict() for _ in range(3)]
    assert reports[0] == reports[1] == reports[2]
    assert any(one["outcome"] == "broken" for one in reports[0]["results"])


CORRUPTING = {
    "deleter-twice-decref": "producer-deleter-once-each",
    "deleter-twice-free": "producer-deleter-frees",
    "deleter-frees-others": "producer-two-exports",
    "deleter-writes-past-end": "",
    "shape-freed": "producer-shape-lasts",
}


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")), reason="its memory is used as always"
)
@pytest.mark.parametrize("fault", CORRUPTING)
def test_a_fault_that_corrupts_memory_gives_the_same_result_each_time(fault: str) -> None:
    rules = {*CORRUPTING.values(), "producer-values", "producer-shape"} - {""}
    found = []
    for size in (0, 1000, 30_000):
        # The heap that cases inherit is another each time.
        kept = [bytearray(n % 700 + 1) for n in range(size)]
        del kept[::2]
        with faults(fault):
            found.append(check(Subject(), rules).to_dict())
    assert found[0] == found[1] == found[2]
    broken = [one["rule"] for one in found[0]["results"] if one["outcome"] != "ok"]
    assert set(CORRUPTING[fault].split()) <= set(broken)


@pytest.mark.parametrize("arguments", [("no-library",), (Subject(), ["no-rule"])])
def test_refuses_an_unknown_library_or_rule(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"no-library|no-rule"):
        check(*arguments)


def test_a_library_that_is_not_installed_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"mindspore.*not installed"):
        check("mindspore")


def test_the_subject_is_used_in_other_processes_only() -> None:
    used = []

    class Noted(Subject):
        def make(self, array: Any) -> Any:
            used.append(array)
            return super().make(array)

    check(Noted(), ["producer-values"]).assert_ok()
    assert used == []


def test_after_three_hangs_the_rest_of_the_role_is_skipped() -> None:
    rules = [rule for rule in RULES if rule.role == "consumer"][:5]
    with faults("import-hangs"):
        report = check(Subject(), [*rules, "producer-values"])
    assert [one.outcome for one in report.results] == ["ok", *["hang"] * 3, *["n/a"] * 2]
