# SPDX-License-Identifier: Apache-2.0
"""Caffe2's modules import from the bridge: in a process that asks for it, and for a script."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import bridge.caffe2
from bridge.caffe2.install import _MODULES

ROOT = Path(__file__).parents[2]

SCRIPT = """
import sys
import numpy as np
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
import caffe2.python.scope, caffe2.python.utils as utils
from caffe2.python.dyndep import InitOpsLibrary

workspace.FeedBlob("x", np.array([1.0, -1.0], np.float32))
net = core.Net("legacy")
with core.NameScope("scope"):
    y = net.Relu(core.BlobReference("x"), "y")
workspace.RunNetOnce(net)
assert isinstance(net.Proto(), caffe2_pb2.NetDef)
print(sys.argv[1:], __name__, workspace.FetchBlob(str(y)).tolist())
"""


def python(
    *arguments: str, fake: Path | None = None, at: Path | None = None
) -> subprocess.CompletedProcess[str]:
    paths = [str(ROOT)] + ([str(fake)] if fake else [])
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=at or ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


@pytest.fixture
def real_caffe2(tmp_path: Path) -> Path:
    """A folder with what Python takes for a Caffe2."""
    package = tmp_path / "with_caffe2" / "caffe2"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("real = True\n")
    return package.parent


def test_a_script_runs_unmodified(tmp_path: Path) -> None:
    script = tmp_path / "legacy.py"
    script.write_text(SCRIPT)
    done = python("-m", "bridge.caffe2", str(script), "--flag", "value")
    assert done.stdout == "['--flag', 'value'] __main__ [1.0, 0.0]\n", done.stderr


def test_a_script_imports_modules_beside_it_and_a_module_runs_too(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 3\n")
    (tmp_path / "main.py").write_text(
        "import beside, sys\nfrom caffe2.python import core\nprint(beside.value, sys.argv[1:])\n"
    )
    done = python("-m", "bridge.caffe2", str(tmp_path / "main.py"))
    assert done.stdout == "3 []\n", done.stderr
    done = python("-m", "bridge.caffe2", "-m", "main", "a", at=tmp_path)
    assert done.stdout == "3 ['a']\n", done.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no option -P")
def test_told_to_look_nowhere_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import sys\nprint(sys.path)\n")
    done = python("-P", "-m", "bridge.caffe2", str(tmp_path / "main.py"))
    assert f"'{tmp_path}'" not in done.stdout and "python3" in done.stdout, done.stderr


def test_the_exit_code_and_error_of_a_script_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "exits.py").write_text("import sys; sys.exit(7)\n")
    (tmp_path / "raises.py").write_text("raise ValueError('mine')\n")
    assert python("-m", "bridge.caffe2", str(tmp_path / "exits.py")).returncode == 7
    done = python("-m", "bridge.caffe2", str(tmp_path / "raises.py"))
    assert done.returncode == 1 and "ValueError: mine" in done.stderr


def test_without_a_script_it_says_how() -> None:
    done = python("-m", "bridge.caffe2")
    assert done.returncode == 2 and "usage" in done.stderr
    done = python("-m", "bridge.caffe2", "--help")
    assert done.returncode == 0 and "script.py" in done.stdout
    done = python("-m", "bridge.caffe2", "nothing.py")
    assert done.returncode == 2 and "nothing.py" in done.stderr


def test_a_real_caffe2_is_not_replaced_unless_forced(real_caffe2: Path, tmp_path: Path) -> None:
    code = """
from bridge import c10, caffe2 as bridged
try:
    bridged.install()
except c10.EnforceNotMet as error:
    assert "real Caffe2" in str(error) and "with_caffe2" in str(error) and "force" in str(error)
else:
    raise AssertionError("installed")
import caffe2
assert caffe2.real
try:
    bridged.install()
except c10.EnforceNotMet as error:
    assert "with_caffe2" in str(error)
else:
    raise AssertionError("installed")
bridged.install(force=True)
bridged.install()
from caffe2.python import workspace, core
assert workspace.RunNet is bridged.workspace.RunNet and core is bridged.core
"""
    done = python("-c", code, fake=real_caffe2)
    assert done.returncode == 0, done.stderr
    script = tmp_path / "legacy.py"
    script.write_text(SCRIPT)
    done = python("-m", "bridge.caffe2", str(script), fake=real_caffe2)
    assert done.returncode == 1 and "--force" in done.stderr and not done.stdout
    done = python("-m", "bridge.caffe2", "--force", str(script), fake=real_caffe2)
    assert done.stdout == "[] __main__ [1.0, 0.0]\n", done.stderr


def test_modules_come_from_the_bridge_and_other_names_are_not_found() -> None:
    code = """
import bridge.caffe2
bridge.caffe2.install()
bridge.caffe2.install()
import caffe2, caffe2.python.workspace
from caffe2.python import workspace, core, scope, utils, model_helper, brew
from caffe2.proto import caffe2_pb2
assert caffe2.python.workspace is workspace is not bridge.caffe2.workspace
assert core is bridge.caffe2.core and caffe2_pb2 is bridge.caffe2.proto.caffe2_pb2
for name in ("caffe2.python.nothing", "caffe2.nothing"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert error.name == name and "caffe2.python.core" in str(error)
    else:
        raise AssertionError(name)
assert len([one for one in __import__("sys").meta_path if "_Caffe2" in type(one).__name__]) == 1
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", [one for one, place in _MODULES.items() if place])
def test_a_module_is_found_by_the_last_part_of_its_name(name: str) -> None:
    if not name.startswith("caffe2.proto") and name != "caffe2.python.workspace":
        last = name.rpartition(".")[2]
        assert importlib.import_module(f"bridge.caffe2.{last}").__name__ == _MODULES[name]
        assert getattr(bridge.caffe2, last).__name__ == _MODULES[name]


def test_libraries_of_operators_that_are_not_files_are_passed_over(tmp_path: Path) -> None:
    """As in the real Caffe2: scripts name them by their place in its sources."""
    library = tmp_path / "ops.so"
    detectron = tmp_path / "libcaffe2_detectron_ops_gpu.so"
    library.write_bytes(b"")
    detectron.write_bytes(b"")
    code = f"""
import bridge.caffe2
bridge.caffe2.install()
from caffe2.python import dyndep
dyndep.InitOpsLibrary("@/caffe2/caffe2/contrib/nccl:nccl_ops")
dyndep.InitOpsLibrary({str(detectron)!r})
assert dyndep.GetImportedOpsLibraries() == set()
try:
    dyndep.InitOpsLibrary({str(library)!r})
except bridge.c10.EnforceNotMet as error:
    assert "ops.so" in str(error) and "caffe2.Operator" in str(error)
else:
    raise AssertionError("loaded")
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert "nccl_ops" in done.stdout
    assert "its operators are there already" in done.stdout


def test_without_install_caffe2_cannot_be_imported() -> None:
    code = "import bridge, bridge.caffe2.install\nimport caffe2"
    done = python("-c", code)
    assert "ModuleNotFoundError" in done.stderr
