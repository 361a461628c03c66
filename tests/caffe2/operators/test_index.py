# SPDX-License-Identifier: Apache-2.0
"""Operators are found by the index, and loaded one module at a time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bridge.caffe2 import workspace
from bridge.caffe2.definitions.operator_types import classes_of
from bridge.caffe2.operators import registry_keys

pytest.importorskip("torch")
ROOT = Path(__file__).parents[3]


def printed(code: str) -> str:
    """Return what a process of its own prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(
        command, check=True, timeout=300, capture_output=True, text=True, cwd=ROOT
    ).stdout


def test_the_index_is_up_to_date() -> None:
    made = printed("from tools.make_operator_index import text; print(text(), end='')")
    assert (ROOT / "bridge/caffe2/operators/index.py").read_text() == made


def test_one_relu_loads_one_module_of_operators_and_few_others() -> None:
    loaded = printed("""
import sys
import numpy as np
import bridge.caffe2
workspace = bridge.caffe2.workspace
workspace.FeedBlob("x", np.array([-1.0, 2.0], np.float32))
workspace.RunOperatorOnce(bridge.caffe2.core.CreateOperator("Relu", "x", "y"))
assert workspace.FetchBlob("y").tolist() == [0, 2]
print(*(name for name in sys.modules if name.partition(".")[0] == "bridge"))
""").split()
    packages = [name for name in loaded if name.startswith("bridge.caffe2.operators.")]
    assert {name.split(".")[3] for name in packages} == {"base", "elementwise", "index"}
    assert "bridge.caffe2.operators.elementwise.binary" not in packages
    assert len(loaded) <= 150, sorted(loaded)


def test_names_are_listed_without_loading_an_operator() -> None:
    names, loaded = printed("""
import sys
from bridge.caffe2 import core, workspace
names = workspace.RegisteredOperators()
assert len(names) == len(core._REGISTERED_OPERATORS) >= 983
print(len(names), [name for name in sys.modules if name.startswith("bridge.caffe2.operators.e")])
""").split(" ", 1)
    assert int(names) >= 983
    assert loaded.strip() == "['bridge.caffe2.operators.engine_names']"


def test_each_name_of_the_index_has_a_class() -> None:
    assert set(registry_keys()) <= set(workspace.RegisteredOperators())
    assert all(classes_of(key) for key in registry_keys())
