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
        feeds = {"x": p, "label": label, "dy": real(rows)}
        add(size, "LabelCrossEntropyGradient", feeds, ["dx"])
        add(size, "CrossEntropy", {"x": p, "label": odds(rows, columns)}, ["y"])
        add(size, "Max", {"x": x, "y": real(rows, columns)}, ["z"])
        add(size, "Softmax", {"x": x}, ["p"])
        add(size, "SoftmaxGradient", {"p": p, "dp": x}, ["dx"])
        add(size, "SoftmaxWithLoss", {"x": x, "label": label}, ["p", "loss"])
        feeds = {"x": x, "label": label, "p": p, "dloss": loss}
        add(size, "SoftmaxWithLossGradient", feeds, ["dx"])
    add("64×56×56", "LeakyRelu", {"x": real(*image)}, ["y"], alpha=0.1)
    add("64×56×56", "LeakyReluGradient", {"y": real(*image), "dy": real(*image)}, ["dx"])
    add("64×56×56", "PRelu", {"x": real(*image), "slope": real(64)}, ["y"])
    feeds = {"y": real(*image), "dy": real(*image), "x": real(*image), "slope": real(64)}
    add("64×56×56", "PReluGradient", feeds, ["dx", "dslope"])
    feeds = {"x": real(*image), "scale": real(64), "bias": real(64)}
    add("64×56×56", "InstanceNorm", feeds, ["y"])
    for op in ("Relu", "Gelu", "Sigmoid", "Tanh"):
        add("64×256", op, {"x": real(64, 256)}, ["y"])
    add("64×256", "Elu", {"x": real(64, 256)}, ["y"])
    add("64×256", "GeluGradient", {"dy": real(64, 256), "x": real(64, 256)}, ["dx"])
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
    for cases_of in (_convolutions, _images, _recommendation):
        cases_of(add, real)
    return found


def _convolutions(add: Any, real: Any) -> None:
    """Add the convolutions of AlexNet, ResNet, DenseNet, ShuffleNet and of masks."""
    for what, image, weights, args in (
        ("11×11, stride 4, of 3×227×227", (1, 3, 227, 227), (96, 3, 11, 11), {"stride": 4}),
        ("5×5 in 2 groups of 96×27×27", (1, 96, 27, 27), (256, 48, 5, 5), {"group": 2, "pad": 2}),
        ("3×3 of 64×56×56", (1, 64, 56, 56), (64, 64, 3, 3), {"pad": 1}),
        ("1×1 of 256×56×56", (1, 256, 56, 56), (64, 256, 1, 1), {}),
        ("3×3 by channel of 136×28×28", (1, 136, 28, 28), (136, 1, 3, 3), {"group": 136, "pad": 1}),
    ):
        args |= {"kernel": weights[-1]}
        feeds = {"x": real(*image), "w": real(*weights), "b": real(weights[0])}
        add(what, "Conv", feeds, ["y"], **args)
    feeds = {"x": real(8, 20, 12, 12), "w": real(50, 20, 5, 5), "dy": real(8, 50, 8, 8)}
    add("5×5 of 8×20×12×12", "ConvGradient", feeds, ["dw", "db", "dx"], kernel=5)
    feeds = {"x": real(4, 256, 14, 14), "w": real(256, 256, 2, 2), "b": real(256)}
    add("2×2, stride 2, of 4×256×14×14", "ConvTranspose", feeds, ["y"], kernel=2, stride=2)


def _images(add: Any, real: Any) -> None:
    """Add what else the zoo's nets do to images and boxes."""
    image = real(1, 64, 56, 56)
    odd = {"kernel": 3, "stride": 2}
    add("3×3, stride 2, of 64×112×112", "MaxPool", {"x": real(1, 64, 112, 112)}, ["y"], **odd)
    add("7×7 of 1,024×7×7", "AveragePool", {"x": real(1, 1024, 7, 7)}, ["y"], kernel=7)
    add("3×3 of 192×28×28", "AveragePool", {"x": real(1, 192, 28, 28)}, ["y"], kernel=3, pad=1)
    x = real(8, 20, 24, 24)
    y = x.reshape(8, 20, 12, 2, 12, 2).max((3, 5))
    feeds = {"x": x, "y": y, "dy": real(*y.shape)}
    add("2×2 of 8×20×24×24", "MaxPoolGradient", feeds, ["dx"], kernel=2, stride=2)
    feeds = {"x": x, "y": y, "dy": feeds["dy"]}
    add("2×2 of 8×20×24×24", "AveragePoolGradient", feeds, ["dx"], kernel=2, stride=2)
    norm = {"size": 5, "alpha": 1e-4, "beta": 0.75}
    add("of 96×55×55", "LRN", {"x": real(1, 96, 55, 55)}, ["y", "scale"], **norm)
    channels = {name: real(64) for name in ("scale", "bias", "mean")}
    feeds = {"x": image, **channels, "variance": np.ones(64, np.float32)}
    add("64×56×56", "SpatialBN", feeds, ["y"], is_test=1)
    feeds = {"x": image, "scale": channels["scale"], "bias": channels["bias"]}
    add("64×56×56", "AffineChannel", feeds, ["y"])
    for op in ("Mul", "Add"):
        feeds = {"x": image, "c": real(64)}
        add("64×56×56 by channel", op, feeds, ["y"], broadcast=1, axis=1)
    add("64×56×56", "Relu", {"x": image}, ["y"])
    add("2 of 64×56×56", "Sum", {"x": image, "y": real(*image.shape)}, ["z"])
    parts = {f"x{i}": real(1, n, 28, 28) for i, n in enumerate((64, 128, 32, 32))}
    add("256×28×28 of 4", "Concat", parts, ["y", "split"])
    add("272×28×28", "ChannelShuffle", {"x": real(1, 272, 28, 28)}, ["y"], group=2, kernel=1)
    add("64×256", "Dropout", {"x": real(64, 256)}, ["y"], is_test=1)
    add("512×28×28", "Transpose", {"x": real(512, 28, 28)}, ["y"], axes=[1, 2, 0])
    add("256×6×6", "Flatten", {"x": real(1, 256, 6, 6)}, ["y"])
    add("16×64×7×7", "Reshape", {"x": real(16, 64, 7, 7)}, ["y", "old"], shape=[16, -1])
    feeds = {"x": real(1, 256, 28, 28)}
    add("256×28×28", "ResizeNearest", feeds, ["y"], width_scale=2.0, height_scale=2.0)
    corners = np.abs(real(100, 2)) * 80
    rois = np.concatenate([np.zeros((100, 1)), corners, corners + np.abs(real(100, 2)) * 200], 1)
    rois = rois.astype(np.float32)
    pooled = {"spatial_scale": 1 / 16, "pooled_h": 14, "pooled_w": 14, "sampling_ratio": 2}
    feeds = {"x": real(1, 64, 38, 50), "rois": rois}
    add("of 100 boxes, 64×14×14", "RoIAlign", feeds, ["y"], **pooled)
    feeds = {"rois": rois, "deltas": real(100, 84) / 10, "info": np.float32([[600, 800, 1.0]])}
    add("100×21", "BBoxTransform", feeds, ["y"])
    anchors = np.array([[-s, -s / r, s, s / r] for s in (16, 64, 128) for r in (0.5, 1, 2)])
    feeds = {"scores": np.abs(real(1, 9, 38, 50)), "deltas": real(1, 36, 38, 50) / 10}
    feeds |= {"info": np.float32([[600, 800, 1.0]]), "anchors": anchors.astype(np.float32)}
    boxes = {"spatial_scale": 1 / 16, "pre_nms_topN": 6000, "post_nms_topN": 300}
    add("9×38×50", "GenerateProposals", feeds, ["rois", "odds"], **boxes, nms_thresh=0.7)


def _recommendation(add: Any, real: Any) -> None:
    """Add what else DLRM does, of 128 rows and 26 tables, and its gradients."""
    odds, label = np.abs(real(128, 1)), real(128, 1)
    add("128×1", "SquaredL2Distance", {"x": odds, "label": label}, ["y"])
    feeds = {"x": odds, "label": label, "dy": real(128)}
    add("128×1", "SquaredL2DistanceGradient", feeds, ["dx", "dlabel"])
    add("128", "AveragedLossGradient", {"x": real(128), "dloss": real(1)}, ["dx"])
    feeds = {"x": label, "label": np.float32(odds > 0.5)}
    add("128×1", "SigmoidCrossEntropyWithLogits", feeds, ["y"])
    feeds = {"dy": real(128), **feeds}
    add("128×1", "SigmoidCrossEntropyWithLogitsGradient", feeds, ["dx"])
    rows, picked = real(128, 729), np.arange(351, dtype=np.int32)
    add("128×351 of 729", "BatchGather", {"x": rows, "i": picked}, ["y"])
    feeds = {"x": rows, "i": picked, "dy": real(128, 351)}
    add("128×351 of 729", "BatchGatherGradient", feeds, ["dx"])
    feeds = {"x": real(128, 27 * 16), "split": np.full(27, 16, np.int32)}
    add("128×432 in 27", "Split", feeds, [f"y{i}" for i in range(27)], axis=1)
    feeds = {"x": real(128, 367), "split": np.int32([16, 351])}
    add("128×367 in 2", "Split", feeds, ["a", "b"], axis=1)
    lengths = np.bincount(np.arange(640) % 128).astype(np.int32)
    indices = (np.arange(640) * 7 % 1000).astype(np.int64)
    feeds = {"dy": real(128, 16), "lengths": lengths, "i": indices}
    add("of 640 rows of 16", "SparseLengthsIndicesInGradientSumGradient", feeds, ["dx"])
    one, rate = np.ones(1, np.float32), np.float32([-1e-6])
    feeds = {"x": real(1000, 16), "one": one, "i": indices, "rows": real(640, 16), "rate": rate}
    add("of 640 rows of 16", "ScatterWeightedSum", feeds, ["x"])
    feeds = {"x": real(512, 367), "one": one, "dx": real(512, 367), "rate": rate}
    add("512×367", "WeightedSum", feeds, ["x"])
    feeds = {"x": real(1000, 16), "moment": np.ones((1000, 16), np.float32), "i": indices}
    feeds |= {"rows": real(640, 16), "rate": rate}
    add("of 640 rows of 16", "SparseAdagrad", feeds, ["x", "moment"])
    add("27 of 128×16", "Sum", {f"x{i}": real(128, 16) for i in range(27)}, ["y"])
    add("", "Iter", {"i": np.int64([0])}, ["i"])
    rates = {"base_lr": -0.1, "policy": "step", "stepsize": 100, "gamma": 0.9}
    add("by steps", "LearningRate", {"i": np.int64([10])}, ["rate"], **rates)
    add("128×1", "ConstantFill", {"x": label}, ["y"], value=1.0)
    add("128×16", "StopGradient", {"x": real(128, 16)}, ["y"])
    add("128×16", "Copy", {"x": real(128, 16)}, ["y"])
    x = real(128, 16)
    add("128×16 to int32", "Cast", {"x": x}, ["y"], to=2)
    add("128×16, as y", "ExpandDims", {"x": x}, ["y"], dims=[1])
    add("128×1×16", "Squeeze", {"x": x.reshape(128, 1, 16)}, ["y"], dims=[1])
    add("128×16", "ResizeLike", {"x": x, "like": x.reshape(16, 128)}, ["y"])
    add("64×256", "MatMul", {"x": real(64, 256), "y": real(256, 128)}, ["z"])
    feeds = {"x": real(128, 27, 16), "y": real(128, 27, 27)}
    add("128×27×27×16", "BatchMatMul", {"y": feeds["y"], "x": feeds["x"]}, ["z"])
    add("of 128 rows", "ReduceFrontSum", {"x": real(128, 256)}, ["y"])
    for op in ("Exp", "Log", "Sqrt", "Sqr"):
        add("64×256", op, {"x": np.abs(real(64, 256)) + 1}, ["y"])
    for op in ("Add", "Mul", "Sub", "Div"):
        add("64×256", op, {"x": real(64, 256), "y": np.abs(real(64, 256)) + 1}, ["z"])
