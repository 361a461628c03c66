# SPDX-License-Identifier: Apache-2.0
"""Train a classifier of handwritten digits on memory that Caffe2, ATen, torch and NumPy share.

The digits, 1,797 images of 8 x 8 pixels, are read in chunks into a growing Caffe2 tensor, which
becomes a blob. An at.Tensor scales and splits it, torch trains two layers whose weights are blobs
too, and NumPy counts the correct answers. The table at the end shows the address that each
framework sees. Exits with 1 if an address differs, which means that bytes were copied, or unless
more than 90 % of the held-out digits are recognized.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace

# The test set of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, 1998), UCI
# Machine Learning Repository, CC BY 4.0: images (1797, 64) of values from 0 to 16, and labels.
DIGITS = Path(__file__).parent / "data" / "digits.npz"
SEED = 0
SIDE = 8  # pixels
BRIGHTEST = 16
HIDDEN = 32
CLASSES = 10
HELD_OUT = 360  # digits
STEPS = 150
LEARNING_RATE = 1.0
WANTED_ACCURACY = 0.90


@dataclass(frozen=True)
class Sight:
    """The address at which one object sees some memory, and the expected address."""

    what: str
    who: str
    address: int
    expected: int
    nbytes: int

    @property
    def copied(self) -> int:
        """The number of bytes that were copied: 0 if the address is as expected."""
        return 0 if self.address == self.expected else self.nbytes


def read_digits(chunk: int = 256) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (pixels, labels) in chunks and in shuffled order, as a reader of files would."""
    with np.load(DIGITS) as digits:
        pictures, answers = digits["images"], digits["labels"].astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(answers))
    for start in range(0, len(order), chunk):
        chosen = order[start : start + chunk]
        yield pictures[chosen], answers[chosen]


def load() -> tuple[caffe2.Tensor, torch.Tensor]:
    """Return the images, a Caffe2 tensor (digits, pixels) grown chunk by chunk, and the labels."""
    images = caffe2.Tensor([0, SIDE * SIDE], "cpu")
    images.mutable_data("float32")  # sets the element type; there are no elements yet
    labels = []
    for pixels, answers in read_digits():
        filled = images.numel()
        images.Extend(len(pixels), 100.0)  # reserve 100 percent more when space runs out
        images.mutable_data("float32")[filled:] = pixels.ravel()
        labels.append(answers)
    return images, torch.from_numpy(np.concatenate(labels))


def make_weight(name: str, *dims: int) -> int:
    """Create a blob of random weights in memory of Caffe2; return its address."""
    weight = caffe2.empty(dims, c10.dtype("float32").device("cpu"))
    bound = dims[0] ** -0.5
    at.Tensor(weight).uniform_(-bound, bound)
    workspace.FeedBlob(name, weight)
    return weight.raw_data()


def train(pixels: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.nn.Parameter]:
    """Fit two layers by gradient descent, in torch. Each step writes to the weights' blobs."""
    weights = {name: torch.nn.Parameter(workspace.FetchTorch(name)) for name in ("fc1", "fc2")}
    for _ in range(STEPS):
        scores = torch.relu(pixels @ weights["fc1"]) @ weights["fc2"]
        loss = torch.nn.functional.cross_entropy(scores, labels)
        gradients = torch.autograd.grad(loss, weights.values())
        with torch.no_grad():
            for weight, gradient in zip(weights.values(), gradients, strict=True):
                weight -= LEARNING_RATE * gradient
    return weights


def classify(pixels: at.Tensor) -> at.Tensor:
    """Run the layers on the weights in the blobs, as at.Tensors. (n, pixels) -> (n, classes)."""
    blobs = workspace.Workspace.current.blobs
    fc1, fc2 = (at.Tensor(blobs[name].Get(caffe2.Tensor)) for name in ("fc1", "fc2"))
    return at.softmax((pixels @ fc1).relu() @ fc2, -1)


def draw(picture: at.Tensor) -> str:
    """Return one image (8, 8) of values from 0 to 1 as text."""
    shades = " .:-=+*#%@"
    return "\n".join(
        "".join(2 * shades[round(value * (len(shades) - 1))] for value in row)
        for row in picture.tolist()
    )


def report(sights: list[Sight]) -> int:
    """Print a table of the addresses; return the number of bytes that were copied."""
    print(f"\n{'what':<10} {'who':<34} {'address':>16} {'bytes':>8} {'copied':>7}")
    for sight in sights:
        line = f"{sight.what:<10} {sight.who:<34} {sight.address:#16x} {sight.nbytes:>8}"
        print(f"{line} {sight.copied:>7}")
    copied = sum(sight.copied for sight in sights)
    print(f"{copied} bytes copied on the way")
    return copied


def main() -> int:
    """Load, train, classify and compare addresses; return the exit status."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)

    images, labels = load()
    start = images.raw_data()
    pictures = caffe2.Tensor([images.size(0), SIDE, SIDE], "cpu")
    pictures.ShareData(images)  # the same memory with other sizes
    workspace.FeedBlob("images", images)
    workspace.FeedBlob("labels", labels)

    pixels = at.Tensor(images)
    pixels.div_(BRIGHTEST)  # in place, visible to all that share the memory
    held_out = pixels[-HELD_OUT:]

    made = {
        "fc1": make_weight("fc1", SIDE * SIDE, HIDDEN),
        "fc2": make_weight("fc2", HIDDEN, CLASSES),
    }
    fetched = workspace.FetchTorch("images")
    weights = train(fetched[:-HELD_OUT], workspace.FetchTorch("labels")[:-HELD_OUT])

    answers = classify(held_out).argmax(-1).numpy()
    right = float((answers == workspace.FetchBlob("labels")[-HELD_OUT:]).mean())
    print(draw(at.Tensor(pictures)[-1]))
    print(f"is classified as {answers[-1]}; {right:.1%} of {HELD_OUT} held-out digits are right")

    size, tail = images.nbytes(), held_out.nbytes()
    end = start + size - tail  # where the held-out digits begin
    numpy_array, imported = bridge.to_numpy(images), np.from_dlpack(pixels)
    labels_again = workspace.FetchTorch("labels")
    sights = [
        Sight("images", "caffe2.Tensor", images.raw_data(), start, size),
        Sight("images", "caffe2.Tensor, ShareData", pictures.raw_data(), start, size),
        Sight("images", "at.Tensor", pixels.data_ptr(), start, size),
        Sight("images", "torch, FetchTorch", fetched.data_ptr(), start, size),
        Sight("images", "NumPy, bridge.to_numpy", numpy_array.ctypes.data, start, size),
        Sight("images", "NumPy, np.from_dlpack", imported.ctypes.data, start, size),
        Sight("held out", "at.Tensor", held_out.data_ptr(), end, tail),
        Sight("held out", "torch", held_out.to_torch().data_ptr(), end, tail),
        Sight("labels", "torch", labels_again.data_ptr(), labels.data_ptr(), labels.nbytes),
    ]
    for name, weight in weights.items():
        blob = workspace.Workspace.current.blobs[name].Get(caffe2.Tensor)
        sights += [
            Sight(name, "caffe2.Tensor in its blob", blob.raw_data(), made[name], weight.nbytes),
            Sight(name, "torch, trained parameter", weight.data_ptr(), made[name], weight.nbytes),
            Sight(name, "NumPy", blob.numpy().ctypes.data, made[name], weight.nbytes),
        ]
    copied = report(sights)

    if copied or right <= WANTED_ACCURACY:
        print(f"FAILED: {copied} bytes copied, {right:.1%} right", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
