# SPDX-License-Identifier: Apache-2.0
"""What forward passes keep for backward passes, and for how long."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from bridge.functions import pass_records as records


class Node:
    """Stands for the derivatives of one run."""

    def pull(self, cotangents: list[Any], wanted: list[int]) -> list[Any]:
        return []

    def pull_recorded(self, cotangents: list[Any]) -> tuple[list[Any], Any]:
        return [], self


def test_a_node_lives_as_long_as_the_memory_of_its_token() -> None:
    kept, node = records.Records(), Node()
    token = kept.token(node)
    assert token.ctypes.data % 64 == 0
    values = np.array(token)
    assert kept.find(values) is node
    del token
    gc.collect()
    assert kept.find(values) is None


def test_a_node_of_bytes_lives_until_it_was_used_and_another_comes() -> None:
    kept, first, second = records.Records(), Node(), Node()
    token = kept.keep(first, b"state")
    assert len(token) == kept.size(b"state")
    assert kept.state(token) == b"state"
    kept.drop_used()
    assert kept.find(token) is first
    assert kept.find(token) is first
    kept.drop_used()
    assert kept.find(token) is None
    assert kept.find(kept.keep(second, b"")) is second


def test_the_number_of_records_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST", 2)
    kept = records.Records()
    tokens = [kept.keep(Node(), b"") for _ in range(3)]
    assert [kept.find(token) is None for token in tokens] == [True, False, False]
