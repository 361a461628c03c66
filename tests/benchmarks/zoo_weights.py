# SPDX-License-Identifier: Apache-2.0
"""Weights for nets that come as graphs alone: as narrow as their operators allow.

The number of channels is free where a convolution makes them. Blobs that an operator ties together,
as a sum does, have the same number: `WIDTH`, or what the groups of a convolution or the boxes of a
detector need. Sizes that follow from the image are found by running the operators one by one. The
weights are scaled so that each result has a deviation of 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bridge.caffe2 import workspace

WIDTH = 8
CLASSES = 8
ANCHORS = [(side, ratio) for side in (16, 32, 64) for ratio in (0.5, 1, 2)]
IMAGES = {"data", "gpu_0/data"}
INPUTS = {*IMAGES, "im_info"}
# Output 0 has the channels of input 0 (and of the others, for Sum).
KEEPS = {
    *("AveragePool", "Dropout", "LRN", "MaxPool", "Relu", "ResizeNearest", "RoIAlign"),
    *("Sigmoid", "SpatialBN", "Mul", "Add", "Sum", "Softmax"),
}


def operators(net: Any) -> Iterator[Any]:
    """Return the operators of a net; in the place of an `If` those of its branches."""
    for op in net.op:
        branches = [arg.n for arg in op.arg if arg.HasField("n")]
        for branch in branches:
            yield from operators(branch)
        if not branches:
            yield op


def argument(op: Any, name: str, default: int) -> int:
    """Return an integer argument of an operator."""
    return next((int(arg.i) for arg in op.arg if arg.name == name), default)


class Channels:
    """The number of channels of each blob that a convolution or FC makes."""

    def __init__(self, net: Any) -> None:
        self.parent: dict[tuple[str, int], tuple[str, int]] = {}
        self.divisor: dict[tuple[str, int], int] = {}
        self.fixed: dict[tuple[str, int], int] = {}
        self.version: dict[str, int] = {}  # a blob that is written again may be another
        self.of_output: dict[int, tuple[str, int]] = {}
        for position, op in enumerate(operators(net)):
            self._read(op)
            if op.output:
                self.of_output[position] = self._write(op)

    def made(self, position: int) -> int:
        """Return how many channels the operator at `position` makes."""
        root = self._root(self.of_output[position])
        divisor = self.divisor.get(root, 1)
        return self.fixed.get(root, -(-WIDTH // divisor) * divisor)

    def _root(self, blob: tuple[str, int]) -> tuple[str, int]:
        while blob in self.parent:
            blob = self.parent[blob]
        return blob

    def _now(self, name: str) -> tuple[str, int]:
        return self._root((name, self.version.get(name, 0)))

    def _read(self, op: Any) -> None:
        if op.type == "Conv" and argument(op, "group", 1) > 1:
            root = self._now(op.input[0])
            self.divisor[root] = math.lcm(self.divisor.get(root, 1), argument(op, "group", 1))
        fixed = {
            "GenerateProposals": {0: len(ANCHORS), 1: 4 * len(ANCHORS)},
            "BBoxTransform": {1: 4 * CLASSES},
            "BoxWithNMSLimit": {0: CLASSES},
        }
        for i, channels in fixed.get(op.type, {}).items():
            self.fixed[self._now(op.input[i])] = channels

    def _write(self, op: Any) -> tuple[str, int]:
        tied = [self._now(name) for name in op.input] if op.type in KEEPS else []
        if op.type != "Sum":
            tied = tied[:1]
        for name in op.output:
            self.version[name] = self.version.get(name, 0) + 1
        own = self._now(op.output[0])
        self.divisor[own] = argument(op, "group", 1) if op.type == "Conv" else 1
        for root in tied:
            if self._root(root) != own:
                self._tie(self._root(root), own)
        return own

    def _tie(self, root: tuple[str, int], own: tuple[str, int]) -> None:
        self.parent[root] = own
        self.divisor[own] = math.lcm(self.divisor.get(own, 1), self.divisor.pop(root, 1))
        if root in self.fixed:
            self.fixed[own] = self.fixed.pop(root)


class Weights:
    """Fills a workspace with what a net needs, running it on the way."""

    def __init__(self, net: Any, side: int) -> None:
        self.random = np.random.RandomState(0)
        self.side = side
        self.feeds: dict[str, Any] = {}
        made: set[str] = set()
        channels = Channels(net)
        for position, op in enumerate(operators(net)):
            fed = [name for name in op.input if name not in made and name not in self.feeds]
            shapes = self._shapes(op, channels.made(position)) if fed else {}
            for i, name in enumerate(op.input):
                if name in fed:
                    self._feed(name, self._value(op, i, name, shapes))
            workspace.RunOperatorOnce(op)
            if op.type in ("Conv", "FC") and op.input[1] in fed:
                deviation = float(workspace.FetchBlob(op.output[0]).std())
                self._feed(op.input[1], self.feeds[op.input[1]] / np.float32(deviation or 1))
                workspace.RunOperatorOnce(op)
            made.update(op.output)

    def _feed(self, name: str, value: Any) -> None:
        self.feeds[name] = value
        workspace.FeedBlob(name, value)

    def _shapes(self, op: Any, out: int) -> dict[int, tuple[int, ...]]:
        if op.input[0] in IMAGES and op.input[0] not in self.feeds:
            self._feed(op.input[0], self._normal(1, 3, self.side, self.side))
        if op.type not in ("Conv", "FC"):
            return {}
        x = workspace.FetchBlob(op.input[0]).shape
        if op.type == "FC":
            matrix = (out, math.prod(x[1:]))
            return {1: (1,) * (argument(op, "axis_w", 1) - 1) + matrix, 2: (out,)}
        kernel = argument(op, "kernel", 1)
        return {1: (out, x[1] // argument(op, "group", 1), kernel, kernel), 2: (out,)}

    def _value(self, op: Any, i: int, name: str, shapes: dict[int, tuple[int, ...]]) -> Any:
        if name in self.feeds:
            return self.feeds[name]
        if name == "im_info":
            return np.array([[self.side, self.side, 1]], np.float32)
        if op.type == "GenerateProposals":
            return np.array([anchor(*one) for one in ANCHORS], np.float32)
        if i in shapes:
            return self._normal(*shapes[i]) * np.float32(0.1 if i == 2 else 1)
        one_each = workspace.FetchBlob(op.input[0]).shape[1]
        is_factor = (op.type, i) in {("SpatialBN", 1), ("SpatialBN", 4), ("Mul", 1)}
        return np.full(one_each, 1.0 if is_factor else 0.1, np.float32)

    def _normal(self, *shape: int) -> Any:
        return self.random.randn(*shape).astype(np.float32)


def anchor(side: int, ratio: float) -> tuple[float, float, float, float]:
    """Return a box of side x side pixels, as high as `ratio` times its width, around 8."""
    width, height = side / math.sqrt(ratio) / 2, side * math.sqrt(ratio) / 2
    return 8 - width, 8 - height, 7 + width, 7 + height


def weights(net: Any, side: int) -> dict[str, Any]:
    """Return what has to be fed for a net of `side` x `side` pixels: {blob: array}.

    Runs the net's operators in the current workspace.
    """
    return Weights(net, side).feeds
