# SPDX-License-Identifier: Apache-2.0
"""Train a net of Caffe2's model zoo with torch, run it in Caffe2's way, and export it.

    python caffe2_to_torch.py [predict_net.pb]

The default net is AlexNet, written out below as in the zoo, with two classes. An init net makes
weights for few channels, so that it is quick. The net becomes a torch.nn.Module on the memory of
the blobs and learns to tell horizontal from vertical stripes; RunNet sees what torch has trained.
Then the net is compiled, and exported for any batch size; to ONNX too if onnxscript is installed.
Exits with 1 if two ways of running it differ.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

from bridge import caffe2
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

SIDE, CHANNELS, FEATURES, CLASSES = 67, 16, 64, 2
STEPS, BATCH = 40, 32


def alexnet() -> Any:
    """Return the NetDef of AlexNet, for inference, as its predict_net.pb has it."""
    net = core.Net("AlexNet")

    def conv(x: str, n: int, **arguments: int) -> str:
        net.Conv([x, f"conv{n}_w", f"conv{n}_b"], f"conv{n}", **arguments)
        net.Relu(f"conv{n}", f"conv{n}")
        return f"conv{n}"

    def pool(x: str, n: int) -> str:
        if n < 5:
            net.LRN(x, [f"norm{n}", f"_norm{n}_scale"], size=5, alpha=1e-4, beta=0.75, bias=1.0)
            x = f"norm{n}"
        net.MaxPool(x, f"pool{n}", kernel=3, stride=2, pad=0)
        return f"pool{n}"

    x = pool(conv("data", 1, kernel=11, stride=4), 1)
    x = pool(conv(x, 2, kernel=5, pad=2, group=2), 2)
    x = conv(conv(x, 3, kernel=3, pad=1), 4, kernel=3, pad=1, group=2)
    x = pool(conv(x, 5, kernel=3, pad=1, group=2), 5)
    for n in (6, 7):
        net.FC([x, f"fc{n}_w", f"fc{n}_b"], f"fc{n}")
        x = f"fc{n}"
        net.Relu(x, x)
        net.Dropout(x, [x, f"_{x}_mask"], ratio=0.5, is_test=1)
    net.FC([x, "fc8_w", "fc8_b"], "fc8")
    net.Softmax("fc8", "prob")
    net.Proto().external_output.append("prob")
    return net.Proto()


def init_net(net: Any) -> core.Net:
    """Return a net that fills the weights; their sizes follow from the graph and the image."""
    init = core.Net("init")
    before = caffe2_pb2.NetDef(name="before")
    image = {"data": [1, 3, SIDE, SIDE]}
    last = [op for op in net.op if op.type == "FC"][-1]
    for op in net.op:
        if op.type in ("Conv", "FC"):
            sizes, _ = workspace.InferShapesAndTypes([init, core.Net(before)], image)
            arguments = {arg.name: arg.i for arg in op.arg}
            outputs = CLASSES if op is last else CHANNELS if op.type == "Conv" else FEATURES
            inputs = sizes.get(op.input[0], image["data"])[1:]
            if op.type == "Conv":
                kernel = arguments["kernel"]
                inputs = [inputs[0] // arguments.get("group", 1), kernel, kernel]
            elif len(inputs) > 1:
                inputs = [int(torch.Size(inputs).numel())]
            init.MSRAFill([], op.input[1], shape=[outputs, *inputs])
            init.ConstantFill([], op.input[2], shape=[outputs])
        before.op.add().CopyFrom(op)
    return init


def stripes(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images of horizontal (0) and vertical (1) stripes with noise, and which they are."""
    labels = torch.randint(0, 2, (count,), generator=generator)
    periods = torch.randint(6, 13, (count, 1), generator=generator)
    waves = torch.sin(2 * torch.pi * torch.arange(SIDE) / periods)
    rows = waves[:, None, :, None].expand(count, 3, SIDE, SIDE)
    images = torch.where(labels[:, None, None, None] == 0, rows, rows.transpose(2, 3))
    return images + 0.3 * torch.randn(images.shape, generator=generator), labels


def train(module: torch.nn.Module) -> None:
    """Train by torch's autograd and one of its optimizers."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    module.train()  # sets is_test of the operator Dropout
    for step in range(STEPS):
        images, labels = stripes(BATCH, generator)
        loss = torch.nn.functional.cross_entropy(module(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0 or step == STEPS - 1:
            print(f"step {step:2}: loss {loss.item():.3f}")
    module.eval()


def differ(what: str, found: Any, expected: torch.Tensor) -> bool:
    """Print whether two results agree."""
    error = float((torch.as_tensor(found) - expected).abs().max())
    print(f"{what:<24} differs by at most {error:.1g}")
    return error > 1e-5


def main(arguments: list[str]) -> int:
    """Run all steps; return the exit status."""
    torch.manual_seed(0)
    net = alexnet()
    if arguments:
        net = caffe2_pb2.NetDef.FromString(Path(arguments[0]).read_bytes())
    init = init_net(net)
    init.Proto().device_option.random_seed = 1
    workspace.RunNetOnce(init)

    # Trained on the scores, before the softmax.
    logits = next(op.input[0] for op in net.op if op.type == "Softmax")
    trained = caffe2.to_module(net, inputs=["data"], outputs=[logits], trainable=True)
    weight = net.op[0].input[1]
    same = trained.get_blob(weight).data_ptr() == workspace.FetchTorch(weight).data_ptr()
    print(f"{len(list(trained.parameters()))} parameters, on the memory of the blobs: {same}")
    train(trained)

    images, labels = stripes(64, torch.Generator().manual_seed(1))
    workspace.FeedBlob("data", images)
    workspace.RunNetOnce(net)  # with the weights that torch has trained
    probabilities = workspace.FetchTorch(net.external_output[0]).clone()
    accuracy = (probabilities.argmax(1) == labels).float().mean().item()
    print(f"RunNet: {accuracy:.0%} of {len(labels)} images")

    module = caffe2.to_module(net, inputs=["data"]).eval()
    wrong = not same or accuracy < 0.9
    with torch.no_grad():
        wrong |= differ("to_module", module(images), probabilities)
        # The back end "inductor", the default, makes it fast; it needs a C++ compiler.
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        wrong |= differ("torch.compile", compiled(images), probabilities)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "alexnet.pt2"
        batch = torch.export.Dim("batch", min=2)
        exported = torch.export.export(module, (images,), dynamic_shapes=({0: batch},))
        torch.export.save(exported, path)
        loaded = torch.export.load(path).module()
        wrong |= differ("torch.export", loaded(images), probabilities)
        wrong |= differ("another batch size", loaded(images[:5]), probabilities[:5])
        if importlib.util.find_spec("onnxscript") is not None:
            # It would name the packages that it can do without.
            logging.getLogger("torch.onnx").setLevel(logging.ERROR)
            with warnings.catch_warnings(action="ignore"):
                torch.onnx.export(
                    module, (images,), path.with_suffix(".onnx"), dynamo=True, verbose=False
                )
            print(f"{path.stem}.onnx: {path.with_suffix('.onnx').stat().st_size} bytes")
    if wrong:
        print("FAILED", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
