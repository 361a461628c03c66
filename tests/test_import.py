# SPDX-License-Identifier: Apache-2.0
"""`import bridge` is light: each framework is loaded when the first tensor of it arrives.

Every case runs in an interpreter of its own, since this one has loaded them all.
"""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bridge

FRAMEWORKS = (
    "cupy",
    "jax",
    "jaxlib",
    "ml_dtypes",
    "numpy",
    "pyarrow",
    "scipy",
    "tensorflow",
    "torch",
    "tvm_ffi",
)


def loaded_after(code: str) -> set[str]:
    """Run `code` in a fresh interpreter; the frameworks that it has loaded by the end."""
    report = f"import json, sys; print(json.dumps([n for n in {FRAMEWORKS!r} if n in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{code}\n{report}"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_probe_sees_a_framework_that_is_loaded() -> None:
    assert "numpy" in loaded_after("import numpy")


def test_import_bridge_loads_no_framework() -> None:
    assert loaded_after("import bridge") == set()


def test_annotations_load_no_typing() -> None:
    loaded_after("""
import sys
from bridge.annotation import Any
from bridge.caffe2 import brew
assert "typing" not in sys.modules
""")


def test_import_bridge_leaves_its_parts_until_they_are_used() -> None:
    code = """
import sys
from pathlib import Path
import bridge
loaded = {name for name in sys.modules if name.startswith("bridge.")}
assert not loaded & {"bridge.at", "bridge.c10", "bridge.caffe2", "bridge.front"}, loaded
for name in bridge.__all__:
    assert getattr(bridge, name) is vars(bridge)[name], name
try:
    bridge.from_dlpak
except AttributeError as error:
    assert "from_dlpak" in str(error), error
else:
    raise AssertionError("a misspelt name was found")
"""
    assert loaded_after(code) <= {"numpy", "ml_dtypes"}


def test_stub_of_a_table_of_names_lists_those_of_its_module() -> None:
    root = Path(bridge.__file__).parent
    faces = [path for path in root.rglob("*.py") if "= lazily(\n" in path.read_text()]
    stubs = [path.with_suffix(".pyi") for path in faces if path.with_suffix(".pyi").exists()]
    for stub in stubs:
        namespace = ast.parse(stub.read_text()).body[-1]
        assert isinstance(namespace, ast.Assign)
        parts = ["bridge", *stub.relative_to(root).with_suffix("").parts]
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        assert ast.literal_eval(namespace.value) == module.__all__, stub
    assert len(stubs) >= 7


def test_front_door_is_listed_before_any_framework_is_loaded() -> None:
    code = "import bridge; assert {'from_dlpack', 'to_torch'} <= set(dir(bridge)), dir(bridge)"
    assert loaded_after(code) == set()


@pytest.mark.parametrize(
    "module", ["bridge.c10", "bridge.caffe2.schema", "bridge.conform", "bridge.typing"]
)
def test_dir_lists_what_is_public_and_no_imports(module: str) -> None:
    face = importlib.import_module(module)
    public = {name for name in dir(face) if not name.startswith("__")}
    assert public == {name for name in face.__all__ if not name.startswith("__")}


@pytest.mark.parametrize(
    "module",
    ["bridge.c10", "bridge.at", "bridge.caffe2", "bridge.caffe2.workspace", "bridge.tf"],
)
def test_no_part_loads_torch(module: str) -> None:
    assert loaded_after(f"import {module}") <= {"numpy", "ml_dtypes"}


def test_messages_of_tensorflow_need_no_framework() -> None:
    code = """
import sys
from pathlib import Path
sys.modules.update(tensorflow=None, torch=None, google=None)  # not to be imported
import bridge
shape = bridge.tf.TensorShape([2, None])
assert bridge.tf.TensorShape(shape.as_proto()) == shape
message = bridge.tf.make_tensor_proto([[1, 2], [3, 4]])
assert bridge.tf.from_tensor_proto(message).tolist() == [[1, 2], [3, 4]]
assert "tf" in dir(bridge)
for name in ("tensorflow", "torch"):
    del sys.modules[name]
"""
    assert loaded_after(code) <= {"numpy", "ml_dtypes"}


def test_numpy_work_never_loads_torch() -> None:
    code = """
import numpy as np
import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace

array = np.arange(6.0).reshape(2, 3)
tensor = bridge.from_dlpack(array)
assert tensor.data_ptr() == array.ctypes.data
assert np.shares_memory(bridge.to_numpy(tensor), array)
assert caffe2.Tensor(tensor).sizes() == (2, 3)
workspace.FeedBlob("x", tensor)
assert (workspace.FetchBlob("x") == array).all()
"""
    assert loaded_after(code) <= {"numpy", "ml_dtypes"}


@pytest.mark.parametrize(
    "use",
    [
        "from bridge.caffe2 import workspace\nworkspace.FeedBlob('x', given)\n"
        "found = workspace.FetchBlob('x')",
        "from bridge import from_dlpack\nfound = from_dlpack(given).numpy()",
        "import bridge.caffe2\n"
        "found = bridge.caffe2.Tensor(bridge.from_dlpack(given)).to_torch(copy=True).numpy()",
    ],
)
@pytest.mark.parametrize(
    "given",
    [
        "import torch\ngiven = torch.arange(3.0)",
        "import polars\ngiven = polars.Series([0.0, 1.0, 2.0])",
        "import tensorflow\ngiven = tensorflow.constant([0.0, 1.0, 2.0])",
    ],
)
def test_each_part_works_when_it_is_all_that_is_imported(given: str, use: str) -> None:
    library = given.split()[1].strip()
    pytest.importorskip(library)
    code = f"{given}\n{use}\nassert found.tolist() == [0.0, 1.0, 2.0], found"
    loaded_after(code)


ABSENT = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)
sys.meta_path.insert(0, Absent())
"""
# How tests and import hooks say that a module is not to be had.
BLOCKED = """
import sys
from pathlib import Path
sys.modules["torch"] = None
"""


@pytest.mark.parametrize("without_torch", [ABSENT, BLOCKED], ids=["absent", "blocked"])
def test_numpy_and_blobs_work_without_torch(without_torch: str) -> None:
    code = f"""
{without_torch}
import numpy as np
import bridge
from bridge.caffe2 import workspace
tensor = bridge.from_dlpack(np.arange(3))
assert bridge.to_numpy(tensor).tolist() == [0, 1, 2]
workspace.FeedBlob("x", np.arange(3))
assert workspace.FetchBlob("x").tolist() == [0, 1, 2]
try:
    bridge.to_torch(tensor)
except ImportError as error:
    assert "torch" in str(error), error
else:
    raise AssertionError("to_torch worked without torch")
sys.modules.pop("torch", None)
"""
    assert "torch" not in loaded_after(code)


def test_a_torch_tensor_is_taken_though_torch_came_later() -> None:
    code = """
import bridge
import torch
tensor = torch.arange(3)
assert bridge.from_dlpack(tensor).data_ptr() == tensor.data_ptr()
"""
    assert "torch" in loaded_after(code)


def test_a_process_that_writes_c_code_loads_setup_and_builds_nothing() -> None:
    """Where processes are not forks, they load the main file of the one that starts them."""
    pytest.importorskip("Cython", reason="setup.py imports it")
    setup = Path(__file__).parents[1] / "setup.py"
    # Without a command, setup() would end the process.
    loaded_after(f"import runpy; runpy.run_path({str(setup)!r}, run_name='__mp_main__')")


def test_the_exchange_and_blobs_need_no_protobuf() -> None:
    code = """
import sys
sys.modules["google"] = None  # not to be imported
import numpy as np
import bridge
from bridge.caffe2 import core, workspace
array = np.arange(3.0)
workspace.FeedBlob("x", bridge.from_dlpack(array))
assert (workspace.FetchBlob("x") == array).all()
try:
    core.Net("n")
except ImportError as error:
    assert "pip install protobuf" in str(error), error
else:
    raise AssertionError("a net without protobuf")
"""
    assert loaded_after(code) <= {"numpy", "ml_dtypes"}


def test_a_fork_waits_for_an_import_of_another_thread(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(0.5)\nvalue = 5\n")
    code = f"""
import os, signal, sys, threading, time
from bridge.lazy import lazily
sys.path.insert(0, {str(tmp_path)!r})
get, _ = lazily("__main__", {{"slow": "value"}})
thread = threading.Thread(target=get, args=("value",))
thread.start()
while "slow" not in sys.modules:
    time.sleep(0.001)
pid = os.fork()
if pid == 0:
    signal.alarm(30)  # it would hang
    os._exit(get("value"))
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "5\n"


def test_what_waits_for_torch_and_has_no_memory_is_done_by_a_later_call() -> None:
    code = """
    from bridge.exchange.torch_api import has_tangent, on_torch_loaded
    done = []

    def fails_once():
        done.append("failed" if not done else "first")
        if done == ["failed"]:
            raise MemoryError

    on_torch_loaded(fails_once)
    on_torch_loaded(lambda: done.append("second"))
    import torch
    tensor = torch.ones(2)
    try:
        has_tangent(tensor)
    except MemoryError:
        assert done == ["failed"], done
    has_tangent(tensor)
    assert sorted(done) == ["failed", "first", "second"], done
    has_tangent(tensor)
    assert len(done) == 3, done
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
