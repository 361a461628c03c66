# SPDX-License-Identifier: Apache-2.0
"""Registering with a package when it is imported, in interpreters of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HABITS = """
import io
x = at.arange(6).reshape(2, 3)
assert torch.utils.data.default_collate([x, x]).shape == (2, 2, 3)
file = io.BytesIO()
torch.save(x, file)
file.seek(0)
assert torch.load(file).tolist() == x.tolist()
assert torch.vmap(lambda row: row * 2)(x).tolist() == (x * 2).tolist()
"""


def run(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "imports",
    [
        "import torch; from bridge import at",
        "from bridge import at; import torch",
        "from bridge import at; x = at.zeros(3); x.numpy(); x.to_torch(); import torch",
    ],
)
def test_either_may_be_imported_first(imports: str) -> None:
    run(imports + HABITS)


def test_a_file_of_another_process_is_loaded(tmp_path: Path) -> None:
    file = str(tmp_path / "x.pt")
    run("import sys, torch; from bridge import at; torch.save(at.ones(2), sys.argv[1])", file)
    found = run("import bridge, sys, torch; print(torch.load(sys.argv[1]))", file)
    assert found == "at.Tensor([1., 1.], dtype=float32)\n"


PACKAGE = """
import importlib, importlib.util, sys, warnings
from bridge.integrations.after_import import after_import
sys.path.insert(0, sys.argv[1])
calls = []
"""


@pytest.fixture
def package(tmp_path: Path) -> str:
    (tmp_path / "some_package").mkdir()
    (tmp_path / "some_package" / "__init__.py").write_text("value = 1\n")
    (tmp_path / "some_package" / "part.py").write_text("value = 2\n")
    (tmp_path / "broken.py").write_text("raise ImportError('broken')\n")
    return str(tmp_path)


def test_called_once_at_the_end_of_the_import(package: str) -> None:
    code = """
after_import("some_package.part", lambda: calls.append(sys.modules["some_package.part"].value))
assert importlib.util.find_spec("some_package.part") is not None and calls == []
import some_package.part
assert calls == [2]
importlib.reload(some_package.part)
assert calls == [2]
assert "exec_module" not in vars(some_package.part.__loader__)
assert type(some_package.part.__loader__) is type(some_package.__loader__)
after_import("some_package", lambda: calls.append("now"))
assert calls == [2, "now"]
"""
    run(PACKAGE + code, package)


def test_a_failed_import_calls_nothing(package: str) -> None:
    code = """
after_import("broken", lambda: calls.append("broken"))
after_import("no_such_module", lambda: calls.append("absent"))
for name in ("broken", "no_such_module"):
    try:
        importlib.import_module(name)
    except ImportError as error:
        assert name in str(error)
assert calls == []
"""
    run(PACKAGE + code, package)


def test_a_callback_that_fails_is_a_warning(package: str) -> None:
    code = """
after_import("some_package", lambda: 1 / 0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import some_package
assert some_package.value == 1
assert "some_package: ZeroDivisionError" in str(caught[0].message), caught
"""
    run(PACKAGE + code, package)
