# SPDX-License-Identifier: Apache-2.0
"""The rules are data: each has its sentence, source, role and level, and a function of its name."""

from __future__ import annotations

import inspect
import json

import pytest

import bridge
from bridge.conform import RULES, Rule
from bridge.conform.cases import CASES, parts_of
from bridge.conform.loading import PARTS
from bridge.conform.rules import chosen_rules


def test_there_are_at_least_sixty() -> None:
    assert len(RULES) >= 60
    assert len(set(RULES)) == len(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_has_role_level_sentence_and_source(rule: Rule) -> None:
    assert rule == rule.id
    assert rule.role in ("producer", "consumer")
    assert rule.id.startswith(rule.role)
    assert rule.level in ("must", "should")
    assert len(rule.text) > 30
    assert rule.text.endswith((".", ")"))
    assert rule.source.startswith(
        ("dlpack.h 1.3, ", "Python Specification for DLPack, ", "Python array API standard 2024.12")
    )


def test_each_has_a_case_and_each_case_a_rule() -> None:
    assert set(CASES) == {str(rule) for rule in RULES}
    for case in CASES.values():
        assert set(parts_of(case)) <= set(PARTS)


def test_cases_can_become_programs() -> None:
    for case in CASES.values():
        lines = inspect.getsource(case).splitlines()
        assert not [line for line in lines if line.startswith("    return")], case.__name__


def test_both_roles_and_both_levels_are_there() -> None:
    assert {rule.role for rule in RULES} == {"producer", "consumer"}
    assert {rule.level for rule in RULES} == {"must", "should"}


def test_a_rule_is_its_id_in_json() -> None:
    assert json.loads(json.dumps([RULES[0]])) == [RULES[0].id]


def test_rules_are_chosen_in_their_order() -> None:
    last, first = RULES[-1], RULES[0]
    assert chosen_rules([last, first]) == [first, last]
    assert chosen_rules(None) == list(RULES)
    assert chosen_rules(str(first)) == [first]


def test_refuses_an_unknown_rule() -> None:
    with pytest.raises(ValueError, match="no rule has the id 'producer-nothing'"):
        chosen_rules(["producer-nothing"])


def test_is_reached_from_the_front_door() -> None:
    assert bridge.conform.RULES is RULES
