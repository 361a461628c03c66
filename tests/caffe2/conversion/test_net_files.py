# SPDX-License-Identifier: Apache-2.0
"""Nets as programs: Python source with weights, .pt2 and .onnx."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.conversion.module_source import ModuleSource
from bridge.caffe2.conversion.net_files import write_net
from bridge.caffe2.conversion.net_source import MissingSizesError, NetSource
from tests.caffe2.modules.test_nets_as_modules import CASES, ZOO, Case, close, module_of
from tests.helpers.isolate import run_python

pytestmark = pytest.mark.usefixtures("fresh_workspace")
each = pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
PREDICTOR = str(Path(__file__).parents[2] / "golden" / "predictor.mdl")


def loaded(folder: Path) -> Any:
    """Import ``module.py`` of a folder."""
    spec = spec_from_file_location("module_of_net", folder / "module.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@each
def test_source_computes_the_results_of_the_net(make: Callable[[], Case], tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    module, inputs = module_of(make())
    write_net(str(tmp_path / "out"), "folder", module, inputs, "a test")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "module.py",
        "weights.safetensors",
    }
    written = loaded(tmp_path / "out").load()
    wanted = module(*inputs).detach().numpy()
    close(written(*inputs), wanted, 1e-6)
    text = (tmp_path / "out" / "module.py").read_text()
    assert "bridge." not in text
    assert "torch.ops" not in text
    assert max(len(line) for line in text.splitlines()) <= 100
    if make.__name__ != "recommender":  # whose inputs have sizes of several kinds
        larger = tuple(torch.cat([one, one, one]) for one in inputs)
        close(written(*larger), module(*larger).detach().numpy(), 1e-6)


def test_source_has_a_line_for_each_operator_and_valid_names() -> None:
    net = core.Net("small net")
    net.Conv(["data", "conv/w", "b.1"], "conv", kernel=3, pad=1, stride=2)
    net.Relu("conv", "conv")
    net.FC(["conv", "class", "fc_b"], "scores")
    net.Softmax("scores", "prob")
    for name, sizes in (("conv/w", (2, 1, 3, 3)), ("b.1", (2,)), ("class", (3, 8)), ("fc_b", (3,))):
        workspace.FeedBlob(name, np.ones(sizes, np.float32))
    module = caffe2.to_module(net, inputs=["data"], outputs=["prob"])
    text = ModuleSource(module, (torch.zeros(1, 1, 4, 4),), "a test").text
    body = text[text.index("class ") : text.index("def load")]
    assert body.split('"""')[2].strip().splitlines() == [
        "def __init__(self):",
        "        super().__init__()",
        "        self.conv_w = nn.Parameter(torch.empty(2, 1, 3, 3))  # conv/w",
        "        self.b_1 = nn.Parameter(torch.empty(2))  # b.1",
        "        self.class_ = nn.Parameter(torch.empty(3, 8))  # class",
        "        self.fc_b = nn.Parameter(torch.empty(3))",
        "",
        "    def forward(self, data):",
        "        conv = F.conv2d(data, self.conv_w, self.b_1, stride=2, padding=1)",
        "        conv = F.relu(conv)",
        "        # FC: scores",
        "        reshape = conv.reshape((data.shape[0], 8))",
        "        scores = F.linear(reshape, self.class_, self.fc_b)",
        "        prob = F.softmax(scores, dim=1)",
        "        return prob",
    ]


def test_source_runs_without_the_bridge(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    source = NetSource(PREDICTOR, None, {})
    module = source.module()
    write_net(str(tmp_path / "net"), "folder", module, source.example_inputs(["data"]), "a test")
    program = (
        "import sys; sys.modules['bridge'] = None; sys.path.insert(0, sys.argv[1])\n"
        "import torch, module\n"
        "net = module.load(trainable=True)\n"
        "y = net(torch.ones(3, 4)); y[0, 0].backward()\n"
        "print(y[2].tolist(), net.fc1_w.grad is not None)"
    )
    command = [sys.executable, "-I", "-c", program, str(tmp_path / "net")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        *str(module(np.ones((1, 4), np.float32))[0].tolist()).split(),
        "True",
    ]


def test_a_predictor_export_knows_its_sizes_and_weights(tmp_path: Path) -> None:
    source = NetSource(PREDICTOR, None, {})
    module = source.module()
    assert (module.input_names, module.output_names) == (("data",), ("prob",))
    (data,) = source.example_inputs(module.input_names)
    assert list(data.shape) == [2, 4]
    write_net(str(tmp_path / "x.pt2"), "pt2", module, (data,), "a test")
    program = f"""
import warnings
import torch
warnings.filterwarnings("ignore", "The given buffer is not writable")  # torch 2.12, of its own
print(torch.export.load({str(tmp_path / "x.pt2")!r}).module()(torch.ones(5, 4)).shape)
"""
    assert run_python(program).strip() == "torch.Size([5, 3])"


@pytest.mark.filterwarnings("ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")
def test_onnx_file_computes_the_results_of_the_net(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    module = NetSource(PREDICTOR, None, {}).module()
    write_net(str(tmp_path / "x.onnx"), "onnx", module, (torch.zeros(2, 4),), "a test")
    session = onnxruntime.InferenceSession(
        str(tmp_path / "x.onnx"), providers=["CPUExecutionProvider"]
    )
    given = np.ones((5, 4), np.float32)
    (found,) = session.run(None, {session.get_inputs()[0].name: given})
    close(found, module(given).numpy(), 1e-6)


def test_onnx_without_its_package_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bridge.caffe2.conversion.net_files.find_spec", lambda name: None)
    module = NetSource(PREDICTOR, None, {}).module()
    with pytest.raises(EnforceNotMet, match="pip install onnxscript"):
        write_net(str(tmp_path / "x.onnx"), "onnx", module, (torch.zeros(2, 4),), "a test")


def test_a_net_that_cannot_be_exported_leaves_the_target_as_it_was(tmp_path: Path) -> None:
    net = core.Net("net")
    net.Unique("x", "y")
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    (tmp_path / "x.pt2").write_bytes(b"before")
    for name, kind in (("x.pt2", "pt2"), ("folder", "folder")):
        with pytest.raises(EnforceNotMet, match=r"Operator 'Unique' at position 0"):
            write_net(str(tmp_path / name), kind, module, (torch.zeros(3, dtype=torch.int32),), "")
    assert (tmp_path / "x.pt2").read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["x.pt2"]


def test_folders_with_other_files_are_not_replaced(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    module = NetSource(PREDICTOR, None, {}).module()
    inputs = (torch.zeros(2, 4),)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "mine").write_text("kept")
    with pytest.raises(EnforceNotMet, match="is not replaced"):
        write_net(str(tmp_path / "net"), "folder", module, inputs, "a test")
    assert (tmp_path / "net" / "mine").read_text() == "kept"
    (tmp_path / "net" / "mine").rename(tmp_path / "net" / "module.py")
    write_net(str(tmp_path / "net"), "folder", module, inputs, "a test")
    assert "def load" in (tmp_path / "net" / "module.py").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["net"]


def test_inputs_without_sizes_are_asked_for(tmp_path: Path) -> None:
    init, net = core.Net("init"), core.Net("net")
    init.ConstantFill([], "w", shape=[3, 4], value=0.5)
    init.ConstantFill([], "b", shape=[3])
    init.ConstantFill([], "x", shape=[1, 1])  # as mobile_exporter writes for inputs
    net.FC(["x", "w", "b"], "y")
    for name, one in (("init.pb", init), ("net.pb", net)):
        (tmp_path / name).write_bytes(one.Proto().SerializeToString())
    paths = str(tmp_path / "net.pb"), str(tmp_path / "init.pb")
    source = NetSource(*paths, {})
    with pytest.raises(MissingSizesError):
        source.example_inputs(source.module().input_names)
    with pytest.raises(EnforceNotMet, match="does not read 'z'"):
        NetSource(*paths, {"z": ([1], "float32")}).module()
    source = NetSource(*paths, {"x": ([2, 4], "float64")})
    (x,) = source.example_inputs(source.module().input_names)
    assert (list(x.shape), x.dtype) == ([2, 4], torch.float64)
    with pytest.raises(EnforceNotMet, match="no elements of 'nothing'"):
        NetSource(*paths, {"x": ([2], "nothing")}).example_inputs(["x"])
    # The weights may be a checkpoint, too.
    workspace.RunNetOnce(init)
    caffe2.save_checkpoint(str(tmp_path / "w.minidb"), ["w", "b"])
    source = NetSource(paths[0], str(tmp_path / "w.minidb"), {"x": ([2, 4], "float32")})
    assert source.module()(torch.ones(1, 4)).tolist() == [[2.0, 2.0, 2.0]]


# Detectors are not exported, and no weights are generated for quantized nets.
CLASSIFIERS = [path for path in ZOO if "int8" not in path.stem and "rcnn" not in path.stem]


@pytest.mark.parametrize("path", CLASSIFIERS, ids=lambda path: path.stem)
def test_source_of_nets_of_the_zoo_computes_their_results(path: Path, tmp_path: Path) -> None:
    from bridge.caffe2.proto import caffe2_pb2
    from tests.benchmarks.zoo_weights import INPUTS, weights

    net = caffe2_pb2.NetDef.FromString(path.read_bytes())
    feeds = weights(net, 64 if path.stem in ("vgg19", "densenet121") else 224)
    workspace.ResetWorkspace()
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)
    module = caffe2.to_module(net, inputs=[name for name in feeds if name in INPUTS])
    inputs = tuple(torch.from_numpy(feeds[name]) for name in module.input_names)
    write_net(str(tmp_path / "net"), "folder", module, inputs, path.name)
    # As the exported program to the last bit; torch's own kernels round otherwise.
    written = loaded(tmp_path / "net").load()
    close(written(*inputs), module(*inputs).detach().numpy(), 2e-6)
