# SPDX-License-Identifier: Apache-2.0
"""The tests of libraries that others must not be imported before, each in a process of its own."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.helpers.alone import ALONE, run_alone
from tests.helpers.isolate import run_python


@pytest.mark.parametrize("file", ["test_libraries.py", "test_objects.py"])
@pytest.mark.parametrize("name", sorted(ALONE))
def test_tests_of_a_library_pass_in_a_process_of_its_own(name: str, file: str) -> None:
    assert run_alone(name, f"tests/libraries/{file}") > 20


def test_paddle_after_tensorflow_is_an_error_and_no_crash() -> None:
    if find_spec("paddle") is None:
        pytest.skip("paddle is not installed")
    assert "Import Paddle first" in run_python(AFTER_TENSORFLOW)


# (TensorFlow itself is not needed: what matters is that it is among the modules)
AFTER_TENSORFLOW = """
import sys, types
sys.modules["tensorflow"] = types.ModuleType("tensorflow")
import bridge
try:
    bridge.convert(b"abcd", "paddle")
except ImportError as error:
    print(error)
"""
