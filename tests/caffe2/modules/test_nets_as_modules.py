# SPDX-License-Identifier: Apache-2.0
"""Whole nets as modules: values, gradients, export, compilation and ONNX of six kinds of nets.

The zoo's nets are compared too if the environment variable CAFFE2_NETS names their folder; see
`tests.benchmarks.nets`.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.benchmarks.zoo_weights import INPUTS, weights
from tests.helpers.torch_release import require_release

pytestmark = pytest.mark.usefixtures("fresh_workspace")


class Case(NamedTuple):
    """A net, its inputs, and the blob that gradients start from."""

    net: core.Net
    inputs: dict[str, Any]
    output: str


class Feeder:
    """Feeds random weights and inputs, the same in each run."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.inputs: dict[str, Any] = {}

    def weight(self, name: str, *sizes: int) -> str:
        scale = np.sqrt(1 / max(1, np.prod(sizes[1:])))
        workspace.FeedBlob(name, self.normal(*sizes) * np.float32(scale))
        return name

    def input(self, name: str, value: Any) -> str:
        self.inputs[name] = value
        workspace.FeedBlob(name, value)
        return name

    def normal(self, *sizes: int) -> Any:
        return self.random.normal(size=sizes).astype(np.float32)


def normalize(feed: Feeder, net: core.Net, x: str, y: str, is_test: int = 0) -> None:
    """Normalize 4 channels, in training mode by default."""
    factors = [feed.weight(name, 4) for name in ("scale", "shift", "mean")]
    workspace.FeedBlob("variance", np.full(4, 0.5, np.float32))
    outputs = [y] if is_test else [y, "mean", "variance", "saved_mean", "saved_variance"]
    net.SpatialBN([x, *factors, "variance"], outputs, is_test=is_test, epsilon=1e-3)


def conv_net() -> Case:
    feed, net = Feeder(), core.Net("conv_net")
    x = feed.input("x", feed.normal(2, 3, 8, 8))
    weights = [feed.weight("w1", 4, 3, 3, 3), feed.weight("b1", 4)]
    net.Conv([x, *weights], "c1", kernel=3, pad=1, stride=2)
    normalize(feed, net, "c1", "n1")
    net.Relu("n1", "n1")
    net.LRN("n1", ["l1", "l1_scale"], size=3, alpha=1e-4, beta=0.75)
    net.MaxPool("l1", "p1", kernel=2, stride=2)
    net.Conv(["p1", feed.weight("w2", 6, 2, 1, 1), feed.weight("b2", 6)], "c2", kernel=1, group=2)
    net.AveragePool("c2", "p2", global_pooling=1)
    net.FC(["p2", feed.weight("w3", 5, 6), feed.weight("b3", 5)], "fc")
    net.Softmax("fc", "y")
    return Case(net, feed.inputs, "y")


def mlp_with_loss() -> Case:
    feed, net = Feeder(), core.Net("mlp")
    x = feed.input("x", feed.normal(4, 6))
    label = feed.input("label", np.array([0, 2, 1, 2], np.int32))
    net.FC([x, feed.weight("w1", 8, 6), feed.weight("b1", 8)], "h")
    net.Tanh("h", "h")
    net.FC(["h", feed.weight("w2", 3, 8), feed.weight("b2", 3)], "scores")
    net.Softmax("scores", "softmax")
    net.LabelCrossEntropy(["softmax", label], "xent")
    net.AveragedLoss("xent", "loss")
    return Case(net, feed.inputs, "loss")


def softmax_with_loss() -> Case:
    feed, net = Feeder(), core.Net("softmax_with_loss")
    x = feed.input("x", feed.normal(4, 6))
    label = feed.input("label", np.array([0, 2, 1, 2], np.int32))
    net.FC([x, feed.weight("w", 3, 6), feed.weight("b", 3)], "scores")
    net.SoftmaxWithLoss(["scores", label], ["softmax", "loss"])
    return Case(net, feed.inputs, "loss")


def recommender() -> Case:
    feed, net = Feeder(), core.Net("dlrm")
    dense = feed.input("dense", feed.normal(3, 5))
    net.FC([dense, feed.weight("bottom_w", 4, 5), feed.weight("bottom_b", 4)], "bottom")
    net.Relu("bottom", "bottom")
    features = ["bottom"]
    for i, (lengths, rows) in enumerate([([2, 0, 3], 7), ([1, 1, 1], 6)]):
        count = sum(lengths)
        indices = feed.input(f"indices_{i}", feed.random.integers(0, rows, count))
        lengths_blob = feed.input(f"lengths_{i}", np.array(lengths, np.int32))
        table = feed.weight(f"table_{i}", rows, 4)
        net.SparseLengthsSum([table, indices, lengths_blob], f"pooled_{i}")
        features.append(f"pooled_{i}")
    net.Concat(features, ["joined", "joined_split"], axis=1, add_axis=1)
    net.BatchMatMul(["joined", "joined"], "products", trans_b=1)
    net.Flatten("products", "flat")
    net.Concat(["flat", "bottom"], ["top_in", "top_split"], axis=1)
    net.FC(["top_in", feed.weight("top_w", 1, 13), feed.weight("top_b", 1)], "logit")
    net.Sigmoid("logit", "y")
    return Case(net, feed.inputs, "y")


def transformer() -> Case:
    feed, net = Feeder(), core.Net("transformer")
    x = feed.input("x", feed.normal(2, 4, 6))
    for name in ("q", "k", "v"):
        net.FC([x, feed.weight(f"{name}_w", 6, 6), feed.weight(f"{name}_b", 6)], name, axis=2)
    net.BatchMatMul(["q", "k"], "scores", trans_b=1)
    net.Scale("scores", "scaled", scale=6**-0.5)
    net.Softmax("scaled", "attention", axis=2)
    net.BatchMatMul(["attention", "v"], "mixed")
    net.Add(["mixed", x], "residual")
    net.LayerNorm(["residual"], ["normal", "mean", "deviation"], axis=2, epsilon=1e-5)
    net.FC(["normal", feed.weight("ff_w", 6, 6), feed.weight("ff_b", 6)], "ff", axis=2)
    net.Gelu("ff", "y")
    return Case(net, feed.inputs, "y")


def nhwc() -> Case:
    feed, net = Feeder(), core.Net("nhwc")
    x = feed.input("x", feed.normal(2, 8, 8, 3))
    weights = [feed.weight("w1", 4, 3, 3, 3), feed.weight("b1", 4)]
    net.Conv([x, *weights], "c1", kernel=3, pad=1, order="NHWC")
    net.Relu("c1", "r1")
    net.MaxPool("r1", "p1", kernel=2, stride=2, order="NHWC")
    net.Conv(
        ["p1", feed.weight("w2", 5, 1, 1, 4), feed.weight("b2", 5)], "c2", order="NHWC", kernel=1
    )
    net.NHWC2NCHW("c2", "t")
    net.AveragePool("t", "y", kernel=4, stride=4)
    return Case(net, feed.inputs, "y")


def u_net() -> Case:
    feed, net = Feeder(), core.Net("u_net")
    x = feed.input("x", feed.normal(2, 2, 8, 8))
    net.Conv([x, feed.weight("w1", 4, 2, 3, 3), feed.weight("b1", 4)], "c1", kernel=3, pad=1)
    net.Relu("c1", "c1")
    net.MaxPool("c1", "p1", kernel=2, stride=2)
    net.Conv(["p1", feed.weight("w2", 6, 4, 3, 3), feed.weight("b2", 6)], "c2", kernel=3, pad=1)
    net.MaxPool("c2", "p2", kernel=2, stride=2)
    net.ResizeNearest("p2", "up2", width_scale=2.0, height_scale=2.0)
    net.Concat(["up2", "c2"], ["joined2", "split2"])
    weights = [feed.weight("w3", 12, 4, 2, 2), feed.weight("b3", 4)]
    net.ConvTranspose(["joined2", *weights], "up1", kernel=2, stride=2)
    net.Concat(["up1", "c1"], ["joined1", "split1"])
    net.Conv(["joined1", feed.weight("w4", 1, 8, 1, 1), feed.weight("b4", 1)], "mask", kernel=1)
    net.Sigmoid("mask", "y")
    return Case(net, feed.inputs, "y")


CASES: list[Callable[[], Case]] = [
    conv_net,
    mlp_with_loss,
    softmax_with_loss,
    recommender,
    transformer,
    nhwc,
    u_net,
]
# The inputs of the others have sizes of several kinds.
batched = pytest.mark.parametrize(
    "make", [make for make in CASES if make is not recommender], ids=lambda make: make.__name__
)
each = pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)


def module_of(case: Case, **options: Any) -> tuple[Any, tuple[torch.Tensor, ...]]:
    """Return the module, and its inputs as torch tensors."""
    module = caffe2.to_module(case.net, inputs=list(case.inputs), outputs=[case.output], **options)
    return module, tuple(torch.from_numpy(value.copy()) for value in case.inputs.values())


def close(found: Any, wanted: Any, tolerance: float, largest: float | None = None) -> None:
    """Assert that two arrays agree relative to the largest element."""
    found = found.detach().numpy() if isinstance(found, torch.Tensor) else found
    assert found.shape == wanted.shape
    if largest is None:
        largest = float(np.abs(wanted).max(initial=0))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * largest)


@each
def test_values_equal_the_values_of_the_net(make: Callable[[], Case]) -> None:
    case = make()
    module, inputs = module_of(case)
    found = module(*inputs)
    workspace.RunNetOnce(case.net)
    close(found, workspace.FetchBlob(case.output), 1e-6)


@each
def test_gradients_equal_the_gradients_of_the_net(make: Callable[[], Case]) -> None:
    case = make()
    module, inputs = module_of(case, trainable=True)
    output = module(*inputs)
    seed = np.random.default_rng(1).normal(size=output.shape).astype(np.float32)
    output.backward(torch.from_numpy(seed.reshape(output.shape)))
    workspace.FeedBlob("seed", seed)
    case.net.AddExternalInput("seed")
    gradients = case.net.AddGradientOperators({case.output: "seed"})
    workspace.RunNetOnce(case.net)
    names = [name for name in workspace.Blobs() if name in gradients and name not in case.inputs]
    parameters = [name for name in names if name in dict(module.named_parameters())]
    assert parameters
    wanted = {}
    for name in parameters:
        gradient = gradients[name]
        if isinstance(gradient, core.GradientSlice):
            wanted[name] = np.zeros_like(workspace.FetchBlob(name))
            indices = workspace.FetchBlob(str(gradient.indices))
            np.add.at(wanted[name], indices, workspace.FetchBlob(str(gradient.values)))
        else:
            wanted[name] = workspace.FetchBlob(str(gradient))
    # Relative to the largest of all: that of a bias of keys is zero, but for rounding.
    largest = max(float(np.abs(one).max()) for one in wanted.values())
    for name in parameters:
        close(module.get_blob(name).grad, wanted[name], 1e-5, largest)


TYPES = [
    (make, dtype)
    for make in CASES
    for dtype in (torch.float64, torch.bfloat16)
    # Sums of rows of shorter types are float32, as in Caffe2.
    if make is not recommender or dtype == torch.float64
]


@pytest.mark.parametrize(("make", "dtype"), TYPES)
def test_a_module_computes_in_another_type(make: Callable[[], Case], dtype: torch.dtype) -> None:
    module, inputs = module_of(make())
    wanted = module(*inputs).detach().numpy()
    module.to(dtype)
    found = module(*[one.to(dtype) if one.is_floating_point() else one for one in inputs])
    assert found.dtype == dtype
    close(found.float(), wanted, 1e-5 if dtype == torch.float64 else 0.1)


@each
def test_contexts_of_torch_change_nothing(make: Callable[[], Case]) -> None:
    module, inputs = module_of(make())
    wanted = module(*inputs).detach().numpy()
    with torch.device("meta"), torch.inference_mode():
        found = module(*inputs)
    close(found, wanted, 1e-6)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        found = module(*inputs)
    finally:
        torch.set_default_dtype(before)
    assert found.dtype == torch.float32
    close(found, wanted, 1e-6)


@each
def test_an_exported_module_is_loaded_and_computes_the_same(make: Callable[[], Case]) -> None:
    module, inputs = module_of(make())
    wanted = module(*inputs).detach().numpy()
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(module, inputs), buffer)
    buffer.seek(0)
    close(torch.export.load(buffer).module()(*inputs), wanted, 1e-6)


@batched
def test_an_exported_module_takes_any_batch(make: Callable[[], Case]) -> None:
    if make in (mlp_with_loss, softmax_with_loss):
        require_release(2, 9, "export takes the batch of a net with a loss for a constant")
    module, inputs = module_of(make())
    batch = torch.export.Dim("batch", min=2)
    shapes = tuple({0: batch} for _ in inputs)
    program = torch.export.export(module, inputs, dynamic_shapes=shapes).module()
    larger = tuple(torch.cat([one, one, one]) for one in inputs)
    close(program(*larger), module(*larger).detach().numpy(), 1e-6)


@each
def test_a_module_compiles_to_one_graph_with_its_gradients(make: Callable[[], Case]) -> None:
    module, inputs = module_of(make(), trainable=True)
    wanted = module(*inputs)
    wanted.sum().backward()
    gradients = {name: one.grad for name, one in module.named_parameters() if one.grad is not None}
    module.zero_grad()
    found = torch.compile(module, fullgraph=True, backend="aot_eager")(*inputs)
    close(found, wanted.detach().numpy(), 1e-6)
    found.sum().backward()
    for name, one in module.named_parameters():
        if name in gradients:
            close(one.grad, gradients[name].numpy(), 1e-5)


@batched
def test_a_module_is_compiled_again_for_other_sizes(make: Callable[[], Case]) -> None:
    module, inputs = module_of(make())
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for times in (1, 2, 3):
        larger = tuple(torch.cat([one] * times) for one in inputs)
        close(compiled(*larger), module(*larger).detach().numpy(), 1e-6)


def test_a_module_is_compiled_before_its_first_run() -> None:
    program = (
        "import torch\n"
        "from bridge import caffe2\n"
        "from bridge.caffe2 import core\n"
        "net = core.Net('net')\n"
        "net.Softmax('x', 'y')\n"
        "module = caffe2.to_module(net)\n"
        "compiled = torch.compile(module, fullgraph=True, backend='aot_eager')\n"
        "print(compiled(torch.zeros(1, 2)).tolist())"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[[0.5, 0.5]]", done.stderr


@each
@pytest.mark.filterwarnings("ignore:.*:FutureWarning", "ignore:.*:DeprecationWarning")
def test_onnx_runtime_computes_the_same(make: Callable[[], Case], tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    if make is conv_net:
        require_release(2, 9, "torch.onnx fails at batch normalization")
    module, inputs = module_of(make())
    wanted = module.eval()(*inputs).detach().numpy()
    path = str(tmp_path / "net.onnx")
    torch.onnx.export(module, inputs, path, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    given = dict(zip(names, [one.numpy() for one in inputs], strict=True))
    close(session.run(None, given)[0], wanted, 1e-5)


@pytest.mark.parametrize("is_test", [0, 1])
def test_train_and_eval_set_the_mode_of_the_operators(is_test: int) -> None:
    """Also where a net in the other mode has other outputs."""
    feed, net = Feeder(), core.Net("modes")
    x = feed.input("x", feed.normal(5, 4, 2, 2))
    normalize(feed, net, x, "n", is_test)
    net.Dropout("n", ["y"] if is_test else ["y", "mask"], is_test=is_test, ratio=0.25)
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"], trainable=True)
    scale, shift, mean, variance = (
        module.get_blob(name) for name in ("scale", "shift", "mean", "variance")
    )
    given = torch.from_numpy(feed.inputs[x])
    wanted = torch.batch_norm(
        given, scale, shift, mean.detach(), variance.detach(), False, 0, 1e-3, False
    )
    torch.testing.assert_close(module.eval()(given), wanted)
    trained = torch.batch_norm(given, scale, shift, None, None, True, 0, 1e-3, False)
    found = module.train()(given)
    kept = found != 0
    assert kept.any()
    assert not kept.all()
    torch.testing.assert_close(found[kept], trained[kept] / 0.75)
    found.sum().backward()
    assert scale.grad is not None
    assert mean.grad is None


FOLDER = os.environ.get("CAFFE2_NETS")
# Not the quantized one, whose weights are not generated.
ZOO = (
    sorted(path for path in Path(FOLDER).glob("*.pb") if "int8" not in path.stem) if FOLDER else []
)


@pytest.mark.parametrize("path", ZOO, ids=lambda path: path.stem)
def test_modules_of_nets_of_the_zoo_compute_the_same(path: Path) -> None:
    net = caffe2_pb2.NetDef.FromString(path.read_bytes())
    side = 64 if any(kind in path.stem for kind in ("rcnn", "vgg", "densenet")) else 224
    feeds = weights(net, side)
    workspace.ResetWorkspace()
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)
    names = [name for name in feeds if name in INPUTS]
    module = caffe2.to_module(net, inputs=names)
    with torch.no_grad():
        found = module(*[feeds[name] for name in names])
    found = found if isinstance(found, tuple) else (found,)
    workspace.RunNetOnce(net)
    for name, one in zip(module.output_names, found, strict=True):
        close(one, workspace.FetchBlob(name), 1e-6)


def test_a_module_takes_inputs_of_strings() -> None:
    net = core.Net("strings")
    net.StringPrefix("texts", "short", length=2)
    net.LengthsTile(["texts", "lengths"], "tiled")
    module = caffe2.to_module(net, inputs=["texts", "lengths"], outputs=["short", "tiled"])
    lengths = torch.tensor([2, 0, 1], dtype=torch.int32)
    for kind in (object, "S", "U"):
        for _ in range(5):
            short, tiled = module(np.array(["abc", "d", ""], kind), lengths)
            assert short.fetch().tolist() == [b"ab", b"d", b""]
            assert tiled.fetch().tolist() == [b"abc", b"abc", b""]


def test_an_operator_that_has_no_gradient_takes_inputs_that_require_them() -> None:
    net = core.Net("beams")
    net.CTCBeamSearchDecoder("x", ["lengths", "values", "p"])
    module = caffe2.to_module(net, inputs=["x"], outputs=["values"])
    x = torch.rand(4, 1, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(module(x.clone().requires_grad_()), module(x))


COMPILED: list[tuple[str, list[Any], int, dict[str, Any]]] = [
    ("Split", [np.ones((4, 6), np.float32)], 2, {"axis": 1, "split": [2, 4]}),
    ("Reshape", [np.ones((4, 6), np.float32)], 2, {"shape": [6, 4]}),
    ("Moments", [np.ones((4, 6), np.float32)], 2, {"axes": [1]}),
    ("Ftrl", [np.ones(3, np.float32), np.ones(6, np.float32), np.ones(3, np.float32)], 2, {}),
    ("PackSegments", [np.array([2, 1], np.int32), np.ones((3, 2), np.float32)], 1, {}),
]


@pytest.mark.parametrize(("op_type", "inputs", "count", "arguments"), COMPILED)
def test_operators_compile_without_a_graph_break(
    op_type: str, inputs: list[Any], count: int, arguments: dict[str, Any]
) -> None:
    if op_type == "PackSegments":
        require_release(2, 9, "values of a tensor break the graph")
    names = [f"x{i}" for i in range(len(inputs))]
    outputs = [f"y{i}" for i in range(count)]
    net = core.Net("one")
    net.Proto().op.append(core.CreateOperator(op_type, names, outputs, **arguments))
    module = caffe2.to_module(net, inputs=names, outputs=outputs)
    tensors = [torch.from_numpy(one) for one in inputs]
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*tensors), module(*tensors))
