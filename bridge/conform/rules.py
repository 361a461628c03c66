# SPDX-License-Identifier: Apache-2.0
"""All rules, in the order of reports: data. The case of each is the function of its name."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.conform.rule import Rule
from bridge.conform.rules_consumer import CONSUMER_RULES
from bridge.conform.rules_producer import PRODUCER_RULES
from bridge.conform.rules_table import TABLE_RULES

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (*PRODUCER_RULES, *CONSUMER_RULES, *TABLE_RULES), key=lambda rule: rule.role, reverse=True
    )
)


def chosen_rules(rules: Iterable[str] | None) -> list[Rule]:
    """Return the rules with these ids, in the order of `RULES`; all for None.

    Raises ValueError: an id is unknown.
    """
    if rules is None:
        return list(RULES)
    wanted = [rules] if isinstance(rules, str) else list(rules)
    known = set(RULES)
    for one in wanted:
        if one not in known:
            raise ValueError(f"no rule has the id {one!r}; see bridge.conform.RULES")
    return [rule for rule in RULES if rule in wanted]
