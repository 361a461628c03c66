# SPDX-License-Identifier: Apache-2.0
"""bridge doctor says whether processes can share tensors, and why not."""

from __future__ import annotations

import json

import pytest

from bridge.shared import handle
from bridge.shell.diagnosis import shared_memory
from tests.helpers.shell import bridge


def test_doctor_says_that_processes_can_share() -> None:
    assert shared_memory() == {"result": "ok", "reason": None}
    done = bridge("doctor", "--json", "numpy")
    assert json.loads(done.out)["processes"] == {"result": "ok", "reason": None}
    assert "sharing between processes: ok" in bridge("doctor", "numpy").out


def test_the_reason_is_told_where_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(nbytes: int) -> None:
        raise OSError(38, "This system has no memfd_create")

    monkeypatch.setattr(handle, "create", create)
    found = shared_memory()
    assert found["result"] == "error"
    assert "no memfd_create" in found["reason"]
