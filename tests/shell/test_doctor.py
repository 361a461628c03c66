# SPDX-License-Identifier: Apache-2.0
"""bridge doctor: frameworks that work, that fail, that crash and that hang."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bridge.exchange.registry import exporting_names
from bridge.shell.diagnosis import diagnose
from tests.helpers.shell import bridge

# Names of frameworks that stand for broken ones here; each as a module that is found first.
BROKEN = {
    "polars": ("raise ImportError('libcudart.so.12: cannot open shared object file')", "libcudart"),
    "openvino": ("import os; os.abort()", "SIGABRT"),
    "paddle": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "tinygrad": ("import os; os._exit(7)", "status 7"),
}


@pytest.fixture
def broken(tmp_path: Path) -> str:
    for name, (code, _) in BROKEN.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code)
    return str(tmp_path)


def test_working_frameworks_share_with_each_other() -> None:
    done = bridge("doctor", "--json", "numpy", "torch", "at", "caffe2")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["ok"] is True
    assert [one["name"] for one in found["frameworks"]] == ["at", "caffe2", "numpy", "torch"]
    assert all(one["version"] and one["reason"] is None for one in found["frameworks"])
    pairs = {(one["source"], one["target"]): one for one in found["conversions"]}
    assert len(pairs) == 16
    assert {one["result"] for one in pairs.values()} == {"shared"}
    assert all(0 < one["seconds"] < 60 for one in pairs.values())


def test_an_old_torch_gets_a_line_for_each_thing_it_lacks(tmp_path: Path) -> None:
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '2.8.0'\nraise ImportError('old')")
    info = tmp_path / "torch-2.8.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\n")
    (info / "RECORD").write_text("torch/__init__.py,,\n")
    done = bridge("doctor", "at", "torch", PYTHONPATH=f"{tmp_path}:{os.getcwd()}")
    assert (
        "torch 2.8.0 lacks conversions by torch's C exchange table: torch 2.10 has it" in done.out
    )
    assert "float8_e8m0fnu" not in done.out


def test_a_framework_that_hangs_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "warp.py").write_text("import time; time.sleep(1000)")
    arguments = "doctor", "--json", "--timeout", "1", "warp"
    done = bridge(*arguments, PYTHONPATH=f"{tmp_path}:{os.getcwd()}")
    assert done.status == 1, done.err
    (row,) = json.loads(done.out)["frameworks"]
    assert "did not end within 1 seconds" in row["reason"]


def test_broken_frameworks_are_rows(broken: str) -> None:
    names = ["numpy", *BROKEN]
    done = bridge("doctor", "--json", *names, PYTHONPATH=f"{broken}:{os.getcwd()}")
    assert done.status == 1, done.err
    found = json.loads(done.out)
    reasons = {one["name"]: one["reason"] for one in found["frameworks"]}
    assert reasons["numpy"] is None
    for name, (_, reason) in BROKEN.items():
        assert reason in reasons[name]
    assert [(one["source"], one["target"]) for one in found["conversions"]] == [("numpy", "numpy")]


def test_the_table_shows_broken_frameworks_and_conversions(broken: str) -> None:
    done = bridge("doctor", "numpy", "polars", "at", PYTHONPATH=f"{broken}:{os.getcwd()}")
    assert done.status == 1
    assert done.err == ""
    assert "broken: ImportError: libcudart.so.12" in done.out
    (row,) = [line for line in done.out.splitlines() if line.startswith("numpy") and "us" in line]
    assert row.count("shared") == 2


def test_missing_frameworks_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.shell.diagnosis._is_installed", lambda name: name == "numpy")
    found: Any = diagnose([], 60)
    assert [one["name"] for one in found["frameworks"]] == ["at", "caffe2", "numpy"]
    assert set(found["missing"]) == {"torch", *exporting_names()} - {"numpy"}


def test_doctor_works_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('no torch', name='torch')")
    done = bridge(
        "doctor", "--json", "numpy", "at", "caffe2", PYTHONPATH=f"{tmp_path}:{os.getcwd()}"
    )
    assert done.status == 0, done.err
    conversions = json.loads(done.out)["conversions"]
    assert [one["result"] for one in conversions] == ["shared"] * 9
