# SPDX-License-Identifier: Apache-2.0
"""Whole networks, operator by operator; `test_nets.py` runs them as nets."""

from __future__ import annotations

from .graphs import NETS

CASES = NETS
