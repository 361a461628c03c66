# SPDX-License-Identifier: Apache-2.0
"""Programs: they run alone, without the bridge, and end with what is broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bridge.conform import RULES, check
from bridge.conform.cases import CASES, MODULES
from bridge.conform.libraries import setup_of
from bridge.conform.programs import definitions, program_of

BROKEN_BY_NUMPY = ["consumer-malformed-null-data", "producer-zero-size-data"]


def test_all_can_be_compiled() -> None:
    for rule in RULES:
        program = program_of(rule, CASES[rule], setup_of("numpy"))
        compile(program, rule, "exec")
        assert "bridge" not in program


def test_names_of_the_kit_are_unique() -> None:
    counted: dict[str, int] = {}
    for module in MODULES:
        for name in definitions():
            if getattr(vars(module).get(name), "__module__", None) == module.__name__:
                counted[name] = counted.get(name, 0) + 1
    assert set(counted.values()) == {1}


@pytest.mark.parametrize("rule", BROKEN_BY_NUMPY)
def test_a_program_of_a_library_shows_it_alone(rule: str, tmp_path: Path) -> None:
    (result,) = check("numpy", [rule]).broken
    assert result.program is not None
    command = [sys.executable, "-I", "-c", result.program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert result.seen in done.stderr


def test_a_program_ends_with_0_where_nothing_is_broken() -> None:
    rule = next(rule for rule in RULES if rule == "consumer-values")
    program = program_of(rule, CASES[rule], setup_of("numpy"))
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
