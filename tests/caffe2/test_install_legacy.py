# SPDX-License-Identifier: Apache-2.0
"""Modules of Caffe2 that the bridge lacks come from an old PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.old_pytorch import REAL, write_folder, write_wheel

ROOT = Path(__file__).parents[2]


def python(*arguments: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=at or ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def check(code: str) -> str:
    """Run code in a process of its own; return what it printed."""
    done = python("-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(params=["folder", "wheel"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An old PyTorch: its site-packages or its wheel."""
    if request.param == "folder":
        return write_folder(tmp_path / "site-packages")
    return write_wheel(tmp_path / "torch-1.8.1.whl")


def test_modules_come_from_there_and_the_bridges_own_do_not(old: Path) -> None:
    before = sorted(str(one) for one in old.parent.rglob("*"))
    out = check(f"""
from bridge import caffe2
caffe2.install(legacy={str(old)!r})
from caffe2.python import pipeline, core, workspace
from caffe2.python.old_layers import fc, names
import caffe2.python.no_init.inner
assert core is caffe2.core if hasattr(caffe2, "core") else True
import bridge.caffe2.core
assert core is bridge.caffe2.core
net, layer = pipeline.make()
print(type(net).__module__, layer, names, caffe2.python.no_init.inner.value, fc.here)
import inspect, linecache, traceback
from caffe2.python import raises
try:
    raises.fail()
except ValueError:
    print(traceback.format_exc().splitlines()[-2].strip())
assert "from the old one" in inspect.getsource(raises.fail)
""")
    where = old / "caffe2" / "python" / "old_layers" / "fc.py"
    assert out.splitlines() == [
        f"bridge.caffe2.core.net a layer ['fc'] 3 {where}",
        "raise ValueError('from the old one')",
    ]
    assert sorted(str(one) for one in old.parent.rglob("*")) == before, "nothing is written"


def test_numpy_is_old_for_these_modules_only(old: Path) -> None:
    check(f"""
from bridge import caffe2
caffe2.install(legacy={str(old)!r})
import numpy as np
before = dict(vars(np))
from caffe2.python import numbers
assert numbers.kinds == [bool, int, float, object, str, complex, float], numbers.kinds
assert numbers.one == 1.5 and type(numbers.one) is float
assert numbers.names == (np.float64, np.str_, 6, np.inf)
assert numbers.is_array and numbers.has_testing and type(numbers.array) is np.ndarray
assert not hasattr(np, "asscalar") and not hasattr(np, "mine")
assert {{name for name in vars(np) if name not in before}} <= set(np.__all__) | set(dir(np))
""")


def test_onnx_has_the_modules_that_it_had_for_these_modules_only(old: Path) -> None:
    pytest.importorskip("onnx")
    check(f"""
from bridge import caffe2
caffe2.install(legacy={str(old)!r})
import numpy as np
from caffe2.python.onnx import types
assert types.number == 7 and types.names == (True, np.dtype("int64"), "optimize")
assert callable(types.polish)
import onnx
assert not hasattr(onnx, "optimizer") and not hasattr(onnx.utils, "polish_model")
try:
    import caffe2.python.onnx.needs
except ModuleNotFoundError as error:
    assert "onnx.a_module_of_the_past, which the installed onnx does not have" in str(error), error
    assert "pip install" not in str(error)
""")


def test_python_2_compatibility_libraries_have_stand_ins(old: Path) -> None:
    check(f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("six", "future", "past"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
for name in [one for one in sys.modules if one.partition(".")[0] == "six"]:
    del sys.modules[name]
sys.meta_path.insert(0, Absent())
from bridge import caffe2
caffe2.install(legacy={str(old)!r})
from caffe2.python import python_2
import abc
from urllib.request import urlretrieve
assert python_2.views == ([(1, 2)], [1], [2])
assert python_2.kinds == (True, int, (str,), True)
assert python_2.classes == (abc.ABCMeta, dict, abc.ABCMeta), python_2.classes
assert python_2.text == "a" and python_2.urlretrieve is urlretrieve
try:
    import six
except ImportError:
    pass
else:
    raise AssertionError("other modules have no stand-in")
""")


def test_messages_of_generated_modules_are_made_for_this_protobuf(old: Path) -> None:
    check(f"""
from bridge import caffe2
caffe2.install(legacy={str(old)!r})
from caffe2.proto import caffe2_pb2, keyword_pb2, python2_pb2, added_pb2
import pickle
for made in (keyword_pb2.OfKeyword, python2_pb2.OfPython2, added_pb2.OfAdded):
    message = made(net=caffe2_pb2.NetDef(name="n"), text="t")
    assert made.FromString(message.SerializeToString()) == message
    assert pickle.loads(pickle.dumps(message)) == message
assert keyword_pb2.KEYWORD_RED == 0 and keyword_pb2.KeywordColor.Name(0) == "KEYWORD_RED"
try:
    from caffe2.proto import empty_pb2
except ImportError as error:
    assert "protoc" in str(error)
else:
    raise AssertionError("imported")
""")


def test_a_missing_module_says_how_to_get_it(old: Path) -> None:
    check(f"""
from bridge import caffe2
caffe2.install()
def failing(code):
    try:
        exec(code)
    except ModuleNotFoundError as error:
        return error
    raise AssertionError(code)
for code in ("from caffe2.python import pipeline", "import caffe2.python.pipeline",
             "from caffe2.python.pipeline import make"):
    error = failing(code)
    assert error.name == "caffe2.python.pipeline"
    for way in ("install(legacy=", "--legacy", "wheel", "site-packages"):
        assert way in str(error), (code, error)
import caffe2.python
assert not hasattr(caffe2.python, "pipeline") and caffe2.python.__name__ == "caffe2.python"
from bridge import caffe2 as bridged
bridged.install(legacy={str(old)!r})
from caffe2.python import pipeline
error = failing("from caffe2.python import nothing")
assert {str(old)!r} in str(error) and error.name == "caffe2.python.nothing"
error = failing("from caffe2.python import needs")
assert error.name == "a_library_that_nobody_has" and "caffe2.python.needs" in str(error)
assert "pip install" in str(error)
error = failing("from caffe2.python import needs_caffe2")
assert error.name == "caffe2.python.fb"
""")


def test_a_second_path_is_for_modules_not_loaded_yet(tmp_path: Path) -> None:
    first, second = write_folder(tmp_path / "a"), write_folder(tmp_path / "b")
    check(f"""
from bridge import c10, caffe2
caffe2.install(legacy={str(first)!r})
from caffe2.python.old_layers import fc
from bridge import caffe2 as bridged
try:
    bridged.install(legacy={str(tmp_path / "nothing")!r})
except c10.EnforceNotMet as error:
    assert "nothing" in str(error)
else:
    raise AssertionError("installed")
bridged.install()
from caffe2.python import raises
bridged.install(legacy={str(second)!r})
from caffe2.python import pipeline, numbers
assert fc.__file__.startswith({str(first)!r}) and raises.__file__.startswith({str(first)!r})
assert pipeline.__file__.startswith({str(second)!r})
""")


def test_a_path_without_caffe2_installs_nothing(tmp_path: Path) -> None:
    check(f"""
from bridge import c10, caffe2
try:
    caffe2.install(legacy={str(tmp_path)!r})
except c10.EnforceNotMet as error:
    assert "no package caffe2" in str(error)
else:
    raise AssertionError("installed")
try:
    from caffe2.python import core
except ImportError:
    pass
else:
    raise AssertionError("installed")
""")


def test_a_script_runs_with_an_old_pytorch(old: Path, tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text(
        "import sys\nfrom caffe2.python import pipeline\nprint(pipeline.make()[1], sys.argv[1:])\n"
    )
    for options in (["--legacy", str(old)], [f"--legacy={old}"], ["--force", "--legacy", str(old)]):
        done = python("-m", "bridge.caffe2", *options, str(script), "--legacy")
        assert done.stdout == "a layer ['--legacy']\n", done.stderr
    done = python("-m", "bridge.caffe2", "--legacy", str(tmp_path / "no"), str(script))
    assert done.returncode == 1 and "no file or folder" in done.stderr
    assert "Traceback" not in done.stderr
    done = python("-m", "bridge.caffe2", "--legacy")
    assert done.returncode == 2 and "usage" in done.stderr


@pytest.mark.skipif(not REAL, reason="CAFFE2_LEGACY does not name an old PyTorch")
def test_the_real_one_runs() -> None:
    """Layers, sessions, readers, builders and pipelines of a real old PyTorch."""
    check(f"""
import warnings
warnings.simplefilter("ignore")
import bridge.caffe2.core
bridge.caffe2.install(legacy={REAL!r}, force=True)
import numpy as np
from caffe2.python import core, dataset, layer_model_helper, layers, schema, workspace
from caffe2.python import checkpoint, dataio, net_builder, pipeline, rnn_cell, session, task
from caffe2.python.net_builder import NetBuilder, ops
from caffe2.python.task import TaskGroup, Task
assert core is bridge.caffe2.core

record = schema.Struct(("x", schema.Scalar((np.float32, (4,)))), ("label", schema.Scalar(np.int32)))
model = layer_model_helper.LayerModelHelper("m", record, schema.Struct())
y = model.FC(model.input_feature_schema.x, 2)
assert y.field_type().shape == (2,), y.field_type()

net = core.Net("records")
net.set_input_record(record)
assert [str(one) for one in net.input_record().field_blobs()] == ["records/x", "records/label"]

with TaskGroup() as group:
    with Task() as one:
        total = ops.Const(0)
        with ops.loop(5):
            ops.Add([total, ops.Const(2)], [total])
        output = one.add_output(total)
with session.LocalSession() as run:
    run.run(group)
    assert output.fetch() == 10, output.fetch()
""")


@pytest.mark.skipif(not REAL, reason="CAFFE2_LEGACY does not name an old PyTorch")
@pytest.mark.parametrize("module", ["schema_test", "control_test", "net_builder_test", "task_test"])
def test_tests_of_the_real_caffe2_pass(module: str) -> None:
    done = python(
        *("-W", "ignore", "-m", "bridge.caffe2", "--force", "--legacy", REAL),
        *("-m", "unittest", f"caffe2.python.{module}"),
    )
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stderr


@pytest.mark.skipif(not REAL, reason="CAFFE2_LEGACY does not name an old PyTorch")
def test_the_real_onnx_frontend_and_backend_run(tmp_path: Path) -> None:
    """A net to ONNX and back, and a model of torch.onnx that Caffe2 runs."""
    pytest.importorskip("onnx")
    check(f"""
import warnings
warnings.simplefilter("ignore")
import bridge.caffe2
bridge.caffe2.install(legacy={REAL!r}, force=True)
import numpy as np, onnx, torch
from caffe2.python import brew, core, model_helper, workspace
from caffe2.python.onnx import backend, frontend

model = model_helper.ModelHelper("net")
y = brew.conv(model, "data", "conv", 3, 4, kernel=3, pad=1)
y = brew.max_pool(model, brew.relu(model, y, y), "pool", kernel=2, stride=2)
brew.softmax(model, brew.fc(model, y, "fc", 4 * 4 * 4, 5), "probabilities")
workspace.RunNetOnce(model.param_init_net)
x = np.random.rand(2, 3, 8, 8).astype(np.float32)
workspace.FeedBlob("data", x)
workspace.RunNetOnce(model.net)
net = model.net.Proto()
net.external_output.append("probabilities")
weights = core.Net("weights")
for name in map(str, model.params):
    value = workspace.FetchBlob(name)
    weights.GivenTensorFill([], name, values=value, shape=value.shape)
written = frontend.caffe2_net_to_onnx_model(
    net, weights.Proto(), {{"data": (onnx.TensorProto.FLOAT, x.shape)}}
)
assert [one.op_type for one in written.graph.node][0] == "Conv"
from onnx.reference import ReferenceEvaluator
expected = workspace.FetchBlob("probabilities")
(theirs,) = ReferenceEvaluator(written).run(None, {{"data": x, **{{}}}})
np.testing.assert_allclose(theirs, expected, rtol=1e-4, atol=1e-6)
np.testing.assert_allclose(backend.run_model(written, [x])[0], expected, rtol=1e-5)

layers = torch.nn.Sequential(
    torch.nn.Conv2d(3, 6, 3, stride=2, padding=1), torch.nn.BatchNorm2d(6), torch.nn.PReLU(6),
    torch.nn.MaxPool2d(2, ceil_mode=True), torch.nn.Flatten(), torch.nn.Linear(24, 5),
    torch.nn.LogSoftmax(1),
).eval()
data = torch.from_numpy(x)
path = {str(tmp_path / "model.onnx")!r}
torch.onnx.export(layers, (data,), path, dynamo=True, verbose=False)
prepared = backend.prepare(onnx.load(path))
np.testing.assert_allclose(prepared.run(x)[0], layers(data).detach().numpy(), rtol=1e-4, atol=1e-5)
assert "Conv" in [one.type for one in prepared.predict_net.op]
node = onnx.helper.make_node("Gemm", ["a", "b", "c"], ["y"], transB=1)
a, b, c = (np.random.rand(*one).astype(np.float32) for one in ((2, 3), (4, 3), (4,)))
np.testing.assert_allclose(backend.run_node(node, [a, b, c]).y, a @ b.T + c, rtol=1e-5)
mask = onnx.numpy_helper.from_array(np.array([True, False]), "mask")
filled = backend.Caffe2Backend._create_tensor_filling_op(mask)
assert filled.type == "GivenTensorBoolFill" and list(filled.arg[0].ints) == [1, 0]
""")
