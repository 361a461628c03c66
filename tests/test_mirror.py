# SPDX-License-Identifier: Apache-2.0
"""`tests/` mirrors the package: where the tests of a module are can be told from its name.

The tests of ``bridge/a/b`` are in ``tests/a/test_b.py`` or ``tests/a/test_b_<topic>.py``. Where
another file has them, the docstring of ``tests/a/__init__.py`` says which; its line ``*`` lists the
files on the package as a whole. A module of operators has cases recorded from Caffe2 instead.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import bridge
from bridge.caffe2.operators import index
from tests.conformance.operators.case import cases, groups

TESTS = Path(__file__).parent
ROOT = Path(bridge.__file__).parent
OPERATORS = "caffe2/operators"
SUFFIXES = {".py", ".pyx", ".pxd"}
# Folders of tests that are arranged by what they hold the package against.
ARRANGED_OTHERWISE = (
    *("fuzz", "benchmarks", "conformance", "exchange/matrix", "helpers", "opinfo"),
)

Table = dict[str, list[str]]


def packages() -> list[str]:
    """Return the folders of the package but those of operators; "" is the package itself."""
    found = (path.parent.relative_to(ROOT).as_posix() for path in ROOT.rglob("__init__.py"))
    return sorted("" if name == "." else name for name in found if not name.startswith(OPERATORS))


def modules_of(folder: str) -> set[str]:
    """Return the names of the modules in a folder of the package."""
    found = {path.stem for path in (ROOT / folder).iterdir() if path.suffix in SUFFIXES}
    return {name.partition(".")[0] for name in found} - {"__init__"}


def files_of(folder: str) -> set[str]:
    """Return the test files of a folder of `tests`, without the suffix."""
    return {path.stem for path in (TESTS / folder).glob("test_*.py")}


def is_named_after(file: str, module: str) -> bool:
    """Return whether the name of a test file shows that it tests the module."""
    return file == f"test_{module}" or file.startswith(f"test_{module}_")


def table_of(folder: str) -> Table:
    """Return the lines ``- modules: files`` of the docstring of a folder of `tests`, by module."""
    dotted = ".".join(["tests", *Path(folder).parts])
    text = importlib.import_module(dotted).__doc__ or ""
    table: Table = {}
    for modules, files in re.findall(
        r"^- ((?:[^:\n]|\n  )+):((?:[^:\n]|\n  )*)$", text, re.MULTILINE
    ):
        for module in re.split(r",\s+", modules):
            table[module] = [name.strip() for name in files.split(",")]
    return table


def exists(folder: str, file: str) -> bool:
    """Return whether a test file of a table exists: of the folder, or from `tests` on."""
    return any((TESTS / start / f"{file}.py").is_file() for start in (folder, ""))


@pytest.mark.parametrize("folder", packages())
def test_each_module_has_tests(folder: str) -> None:
    table, files = table_of(folder), files_of(folder)
    modules = {name for name in modules_of(folder) if not is_declaration(folder, name)}
    named = {name for name in modules if any(is_named_after(file, name) for file in files)}
    listed = table.keys() - {"*"}
    assert modules - named - listed == set(), "neither a file nor a line has these modules' tests"
    assert listed - modules == set(), "the lines of these are of no use: there is no such module"
    assert not [file for row in table.values() for file in row if not exists(folder, file)]


def is_declaration(folder: str, module: str) -> bool:
    """Return whether a module has a ``.pxd`` only, which the modules that cimport it compile."""
    return not any((ROOT / folder / f"{module}{suffix}").exists() for suffix in (".py", ".pyx"))


@pytest.mark.parametrize("folder", packages())
def test_each_file_tests_a_module(folder: str) -> None:
    named = {
        file
        for file in files_of(folder)
        if any(is_named_after(file, name) for name in modules_of(folder))
    }
    assert files_of(folder) - named == set(table_of(folder).get("*", ())) - named


def test_each_folder_of_tests_is_one_of_the_package() -> None:
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    strays = {name for name in folders if not (ROOT / name / "__init__.py").is_file()}
    assert {name for name in strays if not name.startswith(ARRANGED_OTHERWISE)} == set()


def operator_modules() -> dict[str, set[str]]:
    """Return the operator types that each module of operators declares."""
    types: dict[str, set[str]] = {}
    for key, module in index.modules().items():
        types.setdefault(f"bridge.caffe2.operators.{module}", set()).add(
            key.partition("_ENGINE_")[0]
        )
    return types


def test_each_module_of_operators_has_recorded_cases_or_tests() -> None:
    recorded = {step[0] for group in groups() for case in cases(group) for step in case.steps}
    without = []
    for module, types in operator_modules().items():
        folder, _, name = module.removeprefix("bridge.").replace(".", "/").rpartition("/")
        if folder.startswith(OPERATORS) and not types & recorded:
            files = (TESTS / folder).glob("test_*.py")
            if not any(is_named_after(path.stem, name) for path in files):
                without.append(module)
    assert without == []


def test_each_file_on_operators_tests_a_module() -> None:
    for path in (TESTS / OPERATORS).rglob("test_*.py"):
        folder = path.parent.relative_to(TESTS).as_posix()
        if folder != OPERATORS:  # what several packages of operators have in common
            assert any(is_named_after(path.stem, name) for name in modules_of(folder)), path
