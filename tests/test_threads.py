# SPDX-License-Identifier: Apache-2.0
"""All threads at once: without the lock of most Pythons, too. See docs/threads.md."""

from __future__ import annotations

import sys
import sysconfig

import pytest

from tests.helpers.isolate import isolated, run_python
from tests.helpers.stress import SCENARIOS, run

FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


@pytest.mark.skipif(not FREE, reason="this Python always has the lock")
@pytest.mark.parametrize(
    "modules",
    [
        "bridge",
        "bridge.at, bridge.caffe2, bridge.c10",
        "bridge.caffe2.workspace, bridge.caffe2.core, bridge.caffe2.install",
        "bridge.shell.main, bridge.see.explain, bridge.tf",
        "numpy, torch, bridge, bridge.caffe2.operators",
    ],
)
def test_no_import_brings_the_lock_back(modules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHON_GIL", raising=False)  # which would keep it off
    run_python(
        "import sys, warnings\n"
        "warnings.simplefilter('ignore')\n"  # of the frameworks; Python's own warns of the lock
        f"import {modules}\n"
        "assert not sys._is_gil_enabled()"
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
@isolated
def test_eight_threads_use_shared_objects_without_a_fault(scenario: str) -> None:
    sys.setswitchinterval(1e-5)  # in a process of its own
    run(SCENARIOS[scenario](), 60, seed=1)
