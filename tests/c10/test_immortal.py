# SPDX-License-Identifier: Apache-2.0
"""Objects that are kept for good: their references are counted with the GIL only."""

from __future__ import annotations

import sys

import pytest

from bridge import caffe2
from bridge.c10.immortal import immortal
from bridge.caffe2 import workspace
from tests.benchmarks.threads import is_locked


def counts_references(one: object) -> bool:
    """Return whether one more reference to it is counted."""
    before = sys.getrefcount(one)
    kept = [one]
    return sys.getrefcount(kept[0]) != before


def test_immortal_returns_its_argument() -> None:
    one = ["an object"]
    assert immortal(one) is one
    assert counts_references(one) == is_locked()


@pytest.mark.parametrize("module", [caffe2, workspace], ids=lambda module: module.__name__)
def test_a_look_up_in_a_module_shares_nothing_that_changes(module: object) -> None:
    assert counts_references(vars(module)) == is_locked()
