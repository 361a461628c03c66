# SPDX-License-Identifier: Apache-2.0
"""Cases that random changes of others found: refusals, and arguments that Caffe2 ignores."""

from __future__ import annotations

import numpy as np

from .case import Case, case, strings

RANDOM = np.random.RandomState(16)
f32, f64, u16, i32, i64 = np.float32, np.float64, np.uint16, np.int32, np.int64


TEXTS = strings(b"a", b"b", b"c", b"d")


def floats(*sizes: int) -> np.ndarray:
    return RANDOM.randn(*sizes).astype(f32)


def ints(*values: int, dtype: type = i32) -> np.ndarray:
    return np.array(values, dtype)


def parts(*sizes: int) -> np.ndarray:
    return RANDOM.rand(*sizes).astype(f32)


def boxes(*columns: int) -> np.ndarray:
    found = np.abs(floats(6, 4)).cumsum(1) * 60
    return np.insert(found, list(columns), 0, 1).astype(f32)


FPN = {
    "outputs": 4,
    "roi_min_level": 3,
    "roi_max_level": 5,
    "roi_canonical_scale": 100,
    "roi_canonical_level": 3,
}


def weighted_losses() -> list[Case]:
    found = []
    for name in ("log_D_trick", "unjoined_lr_loss"):
        op_type = "WeightedSigmoidCrossEntropyWithLogits"
        operands = [floats(4, 3), parts(4, 3), parts(4, 3)]
        found.append(case(name, op_type, *operands, **{name: 1}))
        found.append(case(name, op_type + "Gradient", floats(4), *operands, **{name: 1}))
    return found


def unsorted_ids() -> list[Case]:
    found = []
    for kind in ("Sum", "Mean", "WeightedSum"):
        for prefix in ("Sorted", "SparseSorted"):
            operands = [parts(6)] if kind == "WeightedSum" else []
            op_type = f"{prefix}Segment{kind}Gradient"
            for name, ids in (
                ("in order", ints(0, 0, 1, 2, 2, 2)),
                ("out of order", ints(0, 0, 1, 2, 2, 0)),
                ("from 1", ints(1, 1, 1, 2, 2, 2)),
                ("too few", ints(0, 0, 0, 1, 1, 1)),
                ("gap", ints(0, 0, 0, 0, 2, 2)),
            ):
                found.append(case(name, op_type, *operands, floats(3, 4), ids))
    return found


def accumulated(name: str, before: np.ndarray) -> Case:
    return Case(
        f"Accumulate {name}",
        {"X": floats(12), "Y": before},
        [("Accumulate", ["X"], ["Y"], {"gamma": 0.5})] * 2,
    )


def large_scores() -> list[Case]:
    """Losses of classes whose softmax is below 1e-20, which some losses have as the least."""
    odds = np.array([[0.125, 0.375, 0.25, 0.25]], f32)
    label, weight = ints(1), np.array([0.5], f32)
    found = []
    for score in (40, 47, 80):
        x = np.array([[score, 0, 0, 0]], f32)
        image = x.reshape(1, 4, 1, 1)
        found += [
            case(
                f"score {score} probabilities", "SoftmaxWithLoss", x, odds, outputs=2, label_prob=1
            ),
            case(f"score {score}", "SoftmaxWithLoss", x, label, outputs=2),
            case(f"score {score} weight", "SoftmaxWithLoss", x, label, weight, outputs=2),
            case(
                f"score {score}", "SpatialSoftmaxWithLoss", image, label.reshape(1, 1, 1), outputs=2
            ),
        ]
    return found


def other_sizes() -> list[Case]:
    """Gradients with a dimension more, or less, than the data."""
    found = []
    ids, lengths = ints(0, 0, 1, 2, 2, 2), ints(2, 1, 3)
    for sizes, gradient in (((4,), (1, 4)), ((1, 4), (4,)), ((2, 2), (4,))):
        x, y, dy = floats(6, *sizes), floats(3, *sizes), floats(3, *gradient)
        name = f"{sizes} {gradient}"
        for kind in ("Max", "Sum", "LogSumExp"):
            found.append(case(name, f"SortedSegmentRange{kind}Gradient", x, y, dy, ids))
        found += [
            case(name, "LengthsMaxWithMainInputAndForwardOutputGradient", y, dy, lengths, x),
            case(
                name, "LengthsWeightedSumWithMainInputGradient", parts(6), dy, lengths, x, outputs=2
            ),
        ]
    return found


# fmt: off
CASES = [
    *weighted_losses(),
    *unsorted_ids(),
    accumulated("on other sizes", floats(6, 2)),
    accumulated("on integers", np.ones(12, i32)),
    case("rows of one value", "FloatToRowwiseQuantized8Bits",
         np.array([[1, 1], [2, 2 + 1e-6], [3, 3.5]], f32), outputs=2),
    case("one column", "FloatToRowwiseQuantized8Bits", floats(4, 1), outputs=2),
    case("small range", "FloatToRowwiseQuantized8Bits", ints(0, 1, dtype=f32)[None] * f32(1e-9),
         outputs=2),
    case("smallest range", "FloatToRowwiseQuantized8Bits", ints(0, 1, dtype=f32)[None] * f32(1e-11),
         outputs=2),
    case("four columns", "DistributeFpnProposals", boxes(), **FPN),
    case("five columns", "DistributeFpnProposals", boxes(0), **FPN),
    case("negative area", "DistributeFpnProposals", boxes(0)[:, [0, 3, 2, 1, 4]].copy(), **FPN),
    case("other rows", "CrossEntropy", parts(5), parts(5)),
    case("gradient (N, 1)", "CrossEntropyGradient", parts(4, 5), parts(4, 5), floats(4, 1)),
    case("1-d and 2-d", "DotProductWithPadding", floats(3, 0), floats(2)),
    case("a (D, 1)", "ElementwiseLinearGradient", floats(3, 4), floats(3, 4), floats(4, 1),
         outputs=3),
    case("eps 0", "Logit", parts(4), eps=0.0),
    case("eps 1", "Logit", parts(4), eps=1.0),
    case("nothing", "LpNorm", floats(3, 0)),
    case("mean of nothing", "LpNorm", floats(3, 0), average=1),
    case("gradient without dimensions", "LpNormGradient", floats(3), np.array(2, f32)),
    case("axis -1", "MomentsGradient", floats(2, 1), floats(2, 1), floats(2, 3), floats(2, 1),
         axes=[-1]),
    case("labels (2, 0)", "PairWiseLoss", floats(2, 0), floats(2, 0)),
    case("weights (3, 1)", "ReduceFrontWeightedSum", floats(3, 2), floats(3, 1)),
    case("n 0", "ReluNGradient", floats(4), floats(4), n=0.0),
    case("nothing", "StringJoin", strings().reshape(0, 3), axis=1),
    case("no tiles", "TileGradient", floats(2, 4), axis=1),
    case("no axis", "TileGradient", floats(2, 4), tiles=2),
    case("one scale", "UpsampleBilinearGradient", floats(1, 1, 4, 4), floats(1, 1, 2, 2),
         ints(2, dtype=f32)),
    case(
        "epsilon -1",
        "InstanceNormGradient",
        floats(1, 2, 2, 2),
        *[floats(2) for _ in range(2)],
        floats(1, 2, 2, 2),
        outputs=3,
        epsilon=-1.0,
    ),
    case("no outer dimension", "BatchGatherGradient", floats(6, 4), ints(), floats(0, 3, 4)),
    case("no batch", "BatchGatherGradient", floats(0, 3, 4), np.zeros((0, 2), i64), floats(0, 2, 4),
         match_outer=1),
    case("uint8", "CopyRowsToTensorGradient", np.ones((2, 3), np.uint8)),
    case("uint16", "CopyRowsToTensorGradient", np.ones((2, 3), u16)),
    case("strings of numbers", "IsMemberOf", ints(1, 2), value=["a", ""]),
    case(
        "decay 0",
        "SparseAdadelta",
        *[parts(3, 2) for _ in range(3)],
        ints(1),
        floats(1, 2),
        floats(1),
        outputs=["X0", "X1", "X2"],
        decay=0.0,
    ),
    case(
        "flat gradient",
        "SparseAdagrad",
        *[parts(5, 4) for _ in range(2)],
        ints(3, 0, 2),
        floats(12),
        floats(1),
        outputs=["X0", "X1"],
    ),
    case("flat gradient", "RowWiseSparseAdagrad", parts(5, 4), parts(5), ints(3, 0, 2), floats(12),
         floats(1), outputs=["X0", "X1"]),
    case(
        "gradient of pairs of rows",
        "SparseAdagrad",
        *[parts(5, 4) for _ in range(2)],
        ints(3, 0, 2, 1).reshape(2, 2),
        floats(2, 2, 4),
        floats(1),
        outputs=["X0", "X1"],
    ),
    case("column index (1, 2)", "BatchBucketize", floats(4, 6), ints(0, 1).reshape(1, 2),
         parts(4).cumsum(), ints(3, 1)),
    case("flat gradient", "EnsureClipped", floats(5, 4), ints(3, 0), floats(8), outputs=["X0"],
         min=0.0),
    case("gradient (N, 1)", "LabelCrossEntropyGradient", parts(4, 5), ints(1, 2, 3, 0),
         floats(4, 1)),
    case("fewer gradients", "SigmoidCrossEntropyWithLogitsGradient", floats(1), floats(4, 3),
         parts(4, 3)),
    case("weights (1, 6)", "LengthsWeightedSumGradient", parts(1, 6), floats(4, 3),
         ints(2, 0, 3, 1)),
    case("axis -1", "Moments", floats(2, 3), axes=[-1], outputs=2),
    case("gradient (1, 1)", "PairWiseLossGradient", floats(3), ints(1, 0, 2, dtype=f32),
         floats(1, 1)),
    case("two outputs in test", "RoIPool", floats(1, 2, 6, 6), ints(0, 1, 1, 4, 4, dtype=f32)[None],
         outputs=2, is_test=1, pooled_h=2, pooled_w=2),
    case("scale (1, 3)", "SquareRootDivide", floats(3, 2), parts(1, 3)),
    case("length -1", "StringSuffix", strings(b"abc"), length=-1),
    case("labels (1, 3)", "HuffmanTreeHierarchy", ints(0, 1, 2, dtype=i64)[None], num_classes=3),
    *large_scores(),
    *[
        Case(
            f"Int8LeakyRelu alpha {alpha}",
            {"X": floats(3, 4)},
            [
                ("Int8Quantize", ["X"], ["Q"], {"Y_scale": 0.02, "Y_zero_point": 120}),
                (
                    "Int8LeakyRelu",
                    ["Q"],
                    ["R"],
                    {"alpha": alpha, "Y_scale": 0.02, "Y_zero_point": 120},
                ),
                ("Int8Dequantize", ["R"], ["Y"], {}),
            ],
            ["Y"],
        )
        for alpha in (0.0, 0.5, 1.0)
    ],
    case("uint16", "GatherRanges", np.arange(6, dtype=u16), ints(0, 1, 2, 2).reshape(1, 2, 2),
         outputs=2),
    case("uint16", "Scatter", np.arange(12, dtype=u16).reshape(4, 3), ints(0, 1, 2).reshape(1, 3),
         ints(6, 7, 8, dtype=u16)[None], outputs=["X0"]),
    case("uint16", "GatherByKey", ints(0, 0, 1), np.arange(6, dtype=u16).reshape(2, 3),
         ints(6, 7, 8, dtype=u16)[None]),
    case("sizes of strings", "ResizeLike", floats(4), TEXTS.reshape(2, 2)),
    case("strings", "ResizeLike", TEXTS, floats(2, 2)),
    case("beside strings", "CopyOnDeviceLike", floats(4), TEXTS),
    case("rows of strings", "SegmentIdsToLengths", ints(0, 0, 1), TEXTS),
    case("rows of strings", "SegmentIdsToRanges", ints(0, 0, 1), TEXTS),
    case("rows of strings", "SparseToDense", ints(0, 2), floats(2), TEXTS),
    case("rows of strings", "LengthsIndicesInGradientSumGradient", floats(2, 3), ints(1, 3), TEXTS),
    case("no rows", "SparseAdagradFusedWithSparseLengthsSumGradientApprox", *[floats(0, 5)] * 2,
         ints(dtype=i64), floats(0, 5), floats(1), ints(), outputs=["X0", "X1"]),
    case("no segments", "SparseAdagradFusedWithSparseLengthsSumGradient", *[parts(3, 5)] * 2,
         ints(dtype=i64), floats(0, 5), floats(1), ints(), outputs=["X0", "X1"]),
    *[
        Case(
            f"FbFCPacked {name}",
            {"X": x, "W": w, "B": b},
            [("FbGemmPack", ["W"], ["P"], {}), ("FbFCPacked", ["X", "P", "B"], ["Y"], {})],
            ["Y"],
        )
        for name, x, w, b in (
            ("no rows", floats(0, 4), floats(3, 4), floats(3)),
            ("b (3, 1)", floats(2, 4), floats(3, 4), floats(3, 1)),
        )
    ],
    *[
        case(
            engine,
            op_type,
            parts(3, 4) - f32(0.5),
            parts(2, 4),
            parts(*last),
            outputs=count,
            engine=engine,
        )
        for engine in (
            "FAKE_FP16",
            "FAKE_BFP_14",
            "FAKE_BFP_16",
            "FAKE_BFP_16_ROUND",
            "FAKE_BFP_24",
        )
        for op_type, last, count in (("FC", (2,), 1), ("FCGradient", (3, 2), 3))
    ],
    *other_sizes(),
    *[
        case(f"gradient {sizes}", op_type, *operands, outputs=2)
        for sizes in ((12,), (3, 4, 1))
        for op_type, operands in (
            ("AddGradient", [floats(*sizes), floats(3, 4), floats(4)]),
            ("SubGradient", [floats(*sizes), floats(3, 4), floats(3, 4)]),
            ("MulGradient", [floats(*sizes), floats(3, 4), floats(4)]),
            ("DivGradient", [floats(*sizes), floats(3, 4), parts(4), floats(3, 4)]),
            (
                "MaxGradient",
                [np.ones((3, 4), f32), floats(*sizes), np.ones((3, 4), f32), parts(3, 4)],
            ),
        )
    ],
    case("no axes", "Moments", floats(2, 3, 4), axes=[], outputs=2),
    case("no axes", "MomentsGradient", *[floats(1, 1)] * 2, floats(2, 3), floats(1, 1), axes=[]),
]
# fmt: on
