# SPDX-License-Identifier: Apache-2.0
"""Operators of the zoo's and DLRM's nets on inputs as large as theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

Case = tuple[str, dict[str, Any], list[str], dict[str, Any]]


def cases() -> dict[str, Case]:
    """Return by its row's name an operator's type, feeds, outputs and arguments."""
    random = np.random.RandomState(0)

    def real(*sizes: int) -> np.ndarray:
        return random.randn(*sizes).astype(np.float32)

    def odds(rows: int, columns: int) -> np.ndarray:
        e = np.exp(real(rows, columns))
        return e / e.sum(1, keepdims=True)

    def labels(rows: int, classes: int) -> np.ndarray:
        return random.randint(0, classes, rows).astype(np.int32)

    def lengths(segments: int, rows: int) -> np.ndarray:
        return np.bincount(random.randint(0, segments, rows), minlength=segments).astype(np.int32)

    image = (1, 64, 56, 56)
    segments = lengths(64, 2048)
    ids = np.repeat(np.arange(64, dtype=np.int32), segments)
    loss = np.array(1, np.float32)
    found: dict[str, Case] = {}

    def add(what: str, op: str, feeds: dict[str, Any], outputs: list[str], **args: Any) -> None:
        found[f"`{op}` {what}"] = op, feeds, outputs, args

    for rows, columns in ((64, 10), (128, 1000)):
        x, label, p = real(rows, columns), labels(rows, columns), odds(rows, columns)
        size = f"{rows}×{columns:,}"
        add(size, "Accuracy", {"x": x, "label": label}, ["y"])
        add(size, "LabelCrossEntropy", {"x": p, "label": label}, ["y"])
        add(size, "Softmax", {"x": x}, ["p"])
        add(size, "SoftmaxGradient", {"p": p, "dp": x}, ["dx"])
        add(size, "SoftmaxWithLoss", {"x": x, "label": label}, ["p", "loss"])
        feeds = {"x": x, "label": label, "p": p, "dloss": loss}
        add(size, "SoftmaxWithLossGradient", feeds, ["dx"])
    add("64×56×56", "LeakyRelu", {"x": real(*image)}, ["y"], alpha=0.1)
    add("64×56×56", "LeakyReluGradient", {"y": real(*image), "dy": real(*image)}, ["dx"])
    add("64×56×56", "PRelu", {"x": real(*image), "slope": real(64)}, ["y"])
    feeds = {"x": real(*image), "scale": real(64), "bias": real(64)}
    add("64×56×56", "InstanceNorm", feeds, ["y"])
    for op in ("Relu", "Gelu", "Sigmoid", "Tanh"):
        add("64×256", op, {"x": real(64, 256)}, ["y"])
    for op in ("ReluGradient", "SigmoidGradient", "TanhGradient"):
        add("64×256", op, {"y": real(64, 256), "dy": real(64, 256)}, ["dx"])
    feeds = {"x": real(8, 64, 28, 28), "scale": real(64), "bias": real(64), "mean": real(64)}
    feeds["variance"] = np.ones(64, np.float32)
    outputs = ["y", "mean", "variance", "saved_mean", "saved_variance"]
    add("in training, 8×64×28×28", "SpatialBN", feeds, outputs, is_test=0)
    feeds = {"x": real(64, 256), "w": real(128, 256), "b": real(128)}
    add("64×256×128", "FC", feeds, ["y"])
    feeds = {"x": real(64, 256), "w": real(128, 256), "dy": real(64, 128)}
    add("64×256×128", "FCGradient", feeds, ["dw", "db", "dx"])
    feeds = {"x": real(128, 27, 16)}
    add("128×27×16", "BatchMatMul", {"x": feeds["x"], "y": feeds["x"]}, ["z"], trans_b=1)
    add("128×16 of 27", "Concat", {f"x{i}": real(128, 16) for i in range(27)}, ["y", "split"])
    add("100,000", "AveragedLoss", {"x": real(100_000)}, ["y"])
    add("512×128", "NormalizeL1", {"x": real(512, 128)}, ["y"])
    add("10", "WeightedSum", {"a": real(10), "p": loss, "b": real(10), "q": loss}, ["a"])
    table = real(100_000, 64)
    rows_at = random.permutation(100_000)[:2048].astype(np.int64)
    add("of 2,048 rows of 64", "Gather", {"table": table, "i": rows_at}, ["y"])
    feeds = {"table": table, "i": rows_at, "rows": real(2048, 64)}
    add("of 2,048 rows of 64", "ScatterAssign", feeds, ["table"])
    feeds = {"x": real(2048, 64), "lengths": segments}
    add("of 64 segments of 2,048 rows of 64", "LengthsMax", feeds, ["y"])
    for op, args in (("SortedSegmentSum", {}), ("UnsortedSegmentSum", {"num_segments": 64})):
        add("of 2,048 rows of 64", op, {"x": real(2048, 64), "ids": ids}, ["y"], **args)
    many = lengths(500, 10_000)
    for op in ("LengthsToSegmentIds", "LengthsRangeFill"):
        add("of 500 segments of 10,000 rows", op, {"lengths": many}, ["y"])
    ids = np.repeat(np.arange(500, dtype=np.int32), many)
    add("of 10,000 ids", "SegmentIdsToLengths", {"ids": ids}, ["y"])
    feeds = {"i": random.randint(0, 1000, 128).astype(np.int64), "size": np.int64([1000])}
    add("128×1,000", "OneHot", feeds, ["y"])
    add("64×10", "IsEmpty", {"x": real(64, 10)}, ["y"])
    pieces = {"bounds": np.sort(real(21)).tolist(), "binary": True}
    pieces |= {"slopes": real(20).tolist(), "intercepts": real(20).tolist()}
    feeds = {"x": random.rand(1024).astype(np.float32)}
    add("of 1,024 in 20 pieces", "PiecewiseLinearTransform", feeds, ["y"], **pieces)
    feeds = {name: np.abs(real(256, 1024)) for name in ("w", "m", "v", "g")}
    feeds |= {"lr": np.float32([0.01]), "i": np.int64([10])}
    add("256×1,024", "Adam", feeds, ["w", "m", "v"])
    feeds = {name: np.abs(real(256, 1024)) for name in ("w", "h", "g")}
    add("256×1,024", "Adagrad", {**feeds, "lr": np.float32([0.01])}, ["w", "h"])
    return found
