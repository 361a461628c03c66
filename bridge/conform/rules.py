# SPDX-License-Identifier: Apache-2.0
"""All rules, in the order of reports: data. The case of each is the function of its name."""

from __future__ import annotations

from bridge.conform.rule import Rule
from bridge.conform.rules_consumer import CONSUMER_RULES
from bridge.conform.rules_producer import PRODUCER_RULES
from bridge.conform.rules_table import TABLE_RULES

__all__ = ["RULES"]

RULES: tuple[Rule, ...] = tuple(
    sorted((*PRODUCER_RULES, *CONSUMER_RULES, *TABLE_RULES), key=lambda rule: rule.role, reverse=True)
)
