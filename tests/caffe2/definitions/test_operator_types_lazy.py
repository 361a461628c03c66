# SPDX-License-Identifier: Apache-2.0
"""What waits to be loaded is called each time that operators are refreshed."""

from __future__ import annotations

import pytest

from bridge.caffe2 import core
from bridge.caffe2.definitions import operator_types


def test_what_was_registered_is_called_at_each_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_types, "_lazy_imports", [])
    calls: list[int] = []
    operator_types.RegisterLazyImport(lambda: calls.append(1))
    core.RefreshRegisteredOperators(trigger_lazy=False)
    assert calls == []
    core.RefreshRegisteredOperators()
    operator_types.TriggerLazyImport()
    assert calls == [1, 1]
