# SPDX-License-Identifier: Apache-2.0
"""Normalization, Dropout, and what works by channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case

_random = np.random.RandomState(17)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return _random.uniform(0.5, 2.0, shape).astype(np.float32)


IMAGE = values(2, 4, 3, 5)
NHWC = values(2, 3, 5, 4)


def norms(*shape: int, channels: int = 4) -> list[np.ndarray]:
    """An image, scale, bias, mean and variance."""
    return [
        values(*shape),
        values(channels),
        values(channels),
        values(channels),
        positive(channels),
    ]


def trained(name: str, image: np.ndarray, channels: int, **args: Any) -> Case:
    """SpatialBN in training: running moments in place, and the gradients from what it gave out."""
    feeds = dict(
        zip(["X", "scale", "bias", "mean", "var"], [image, *norms(1, channels=channels)[1:]])
    )
    outputs = ["Y", "mean", "var", "saved_mean", "saved_rstd"]
    inputs = list(feeds)
    feeds["dY"] = values(*image.shape)
    step = ("SpatialBN", inputs, outputs, {"is_test": 0, **args})
    back = {key: value for key, value in args.items() if key in ("order", "epsilon")}
    gradient = ("SpatialBNGradient", ["X", "scale", "dY", *outputs[3:]], ["dX", "ds", "db"], back)
    return Case(f"SpatialBN train {name}", feeds, [step, gradient])


def forth_and_back(
    name: str, op: str, inputs: list[np.ndarray], outputs: int, gradient: list[str], **args: Any
) -> Case:
    """An operator, and its gradient, which takes what `gradient` names."""
    feeds = {f"X{i}": value for i, value in enumerate(inputs)}
    made = [f"Y{i}" for i in range(outputs)]
    back = [f"dX{i}" for i in range(len(inputs))]
    steps = [(op, list(feeds), made, args), (f"{op}Gradient", gradient, back, args)]
    feeds["dY"] = values(*inputs[0].shape)
    return Case(f"{op} {name}, and back", feeds, steps)


# fmt: off
CASES: list[Case] = [
    case("test", "SpatialBN", *norms(2, 4, 3, 5), is_test=1),
    case("test, epsilon", "SpatialBN", *norms(2, 4, 3, 5), is_test=1, epsilon=0.1),
    case("test, NHWC", "SpatialBN", *norms(2, 3, 5, 4), is_test=1, order="NHWC"),
    case("test, matrix", "SpatialBN", *norms(5, 4), is_test=1),
    case("test, one dimension", "SpatialBN", *norms(2, 4, 6), is_test=1),
    case("test, volume", "SpatialBN", *norms(1, 4, 2, 3, 2), is_test=1),
    case("test, no images", "SpatialBN", *norms(0, 4, 3, 5), is_test=1),
    case("test, in place", "SpatialBN", *norms(2, 4, 3, 5), outputs=["X0"], is_test=1),
    case("test, scale too short", "SpatialBN", *norms(2, 4, 3, 5, channels=3), is_test=1),
    case("test, five outputs", "SpatialBN", *norms(2, 4, 3, 5), outputs=5, is_test=1),
    case("training, one output", "SpatialBN", *norms(2, 4, 3, 5), is_test=0),
    case("is_test not said", "SpatialBN", *norms(2, 4, 3, 5)),
    case("is_test not said", "Dropout", values(2, 3), outputs=2),
    case("epsilon of zero", "SpatialBN", *norms(2, 4, 3, 5), is_test=1, epsilon=0.0),
    trained("plain", IMAGE, 4),
    trained("momentum", IMAGE, 4, momentum=0.5, epsilon=0.01),
    trained("NHWC", NHWC, 4, order="NHWC"),
    trained("volume", values(2, 3, 2, 2, 2), 3),
    case("two batches", "SpatialBNGradient", IMAGE, values(4), values(2, 4, 3, 5), values(4),
         positive(4), values(4), values(4), outputs=["Y0", "X5", "X6"], num_batches=2),
    Case(
        "SpatialBN train two batches",
        dict(
            zip(
                ["X", "scale", "bias", "mean", "var", "s", "q"],
                [*norms(2, 4, 3, 5), values(4), 60 * positive(4)],
            )
        ),
        [
            (
                "SpatialBN",
                ["X", "scale", "bias", "mean", "var", "s", "q"],
                ["Y", "mean", "var", "m", "r"],
                {"is_test": 0, "num_batches": 2},
            )
        ],
    ),
    case("plain", "InstanceNorm", IMAGE, values(4), values(4)),
    case("moments", "InstanceNorm", IMAGE, values(4), values(4), outputs=3, epsilon=0.01),
    case("NHWC", "InstanceNorm", NHWC, values(4), values(4), outputs=3, order="NHWC"),
    case("one dimension", "InstanceNorm", values(2, 4, 6), values(4), values(4)),
    case("scale too short", "InstanceNorm", IMAGE, values(3), values(4)),
    forth_and_back("NCHW", "InstanceNorm", [IMAGE, values(4), values(4)], 3,
        ["X0", "X1", "X2", "dY", "Y1", "Y2"]),
    forth_and_back("NHWC", "InstanceNorm", [NHWC, values(4), values(4)], 3,
        ["X0", "X1", "X2", "dY", "Y1", "Y2"], order="NHWC"),
    case("without moments", "InstanceNormGradient", IMAGE, values(4), values(4), values(2, 4, 3, 5),
         outputs=3),
    case("plain", "LayerNorm", values(3, 4), outputs=3),
    case("image", "LayerNorm", IMAGE, outputs=3),
    case("axis", "LayerNorm", IMAGE, outputs=3, axis=2, epsilon=0.01),
    case("negative axis", "LayerNorm", IMAGE, outputs=3, axis=-1),
    case("affine", "LayerNorm", values(3, 4), values(4), values(4), outputs=3,
         elementwise_affine=True),
    case("affine, axis", "LayerNorm", IMAGE, values(3, 5), values(15), outputs=3, axis=2,
         elementwise_affine=True),
    case("double", "LayerNorm", values(3, 4).astype(np.float64), outputs=3),
    case("no rows", "LayerNorm", values(0, 4), outputs=3),
    case("one dimension", "LayerNorm", values(4), outputs=3),
    case("gradient", "LayerNormGradient", values(3, 4), values(3, 4), values(3, 1), positive(3, 1),
         values(3, 4)),
    case("gradient, affine", "LayerNormGradient", values(3, 4), values(3, 4), values(3, 1),
         positive(3, 1), values(3, 4), values(4), outputs=3, elementwise_affine=True),
    case("two groups", "GroupNorm", IMAGE, values(4), values(4), group=2),
    case("moments", "GroupNorm", IMAGE, values(4), values(4), outputs=3, group=4, epsilon=0.01),
    case("one group", "GroupNorm", IMAGE, values(4), values(4), outputs=3, group=1),
    case("NHWC", "GroupNorm", NHWC, values(4), values(4), outputs=3, group=2, order="NHWC"),
    case("32 groups", "GroupNorm", values(1, 64, 2, 2), values(64), values(64)),
    case("one dimension", "GroupNorm", values(2, 4, 6), values(4), values(4), group=2),
    case("not divisible", "GroupNorm", IMAGE, values(4), values(4), group=3),
    forth_and_back("NCHW", "GroupNorm", [IMAGE, values(4), values(4)], 3,
        ["dY", "X0", "X1", "X2", "Y1", "Y2"], group=2),
    forth_and_back("NHWC", "GroupNorm", [NHWC, values(4), values(4)], 3,
        ["dY", "X0", "X1", "X2", "Y1", "Y2"], group=2, order="NHWC"),
    case("plain", "RMSNorm", values(3, 4), values(4), values(4), outputs=2),
    case("axis and eps", "RMSNorm", values(2, 3, 4), values(4), values(4), outputs=2, axis=2,
         eps=0.1),
    case(
        "double",
        "RMSNorm",
        *[values(*s).astype(np.float64) for s in ((3, 4), (4,), (4,))],
        outputs=2,
    ),
    case("gradient", "RMSNormGradient", values(3, 4), values(3, 4), values(4), positive(3),
         outputs=3),
    case("one output", "LRN", IMAGE, size=3, alpha=0.1, beta=0.75),
    case("scale", "LRN", IMAGE, outputs=2, size=5, alpha=1e-4, beta=0.75, bias=2.0),
    case("size 1", "LRN", IMAGE, outputs=2, size=1, alpha=0.5, beta=0.5),
    case("more than the channels", "LRN", IMAGE, outputs=2, size=9, alpha=0.5, beta=0.5),
    case("NHWC", "LRN", NHWC, outputs=2, size=3, alpha=0.1, beta=0.75, order="NHWC"),
    case("many channels", "LRN", values(1, 20, 2, 2), outputs=2, size=5, alpha=0.1, beta=0.75),
    forth_and_back("NCHW", "LRN", [IMAGE], 1, ["X0", "Y0", "dY"], size=3, alpha=0.1, beta=0.75),
    forth_and_back("NHWC", "LRN", [NHWC], 1, ["X0", "Y0", "dY"], size=3, alpha=0.1, beta=0.75,
        order="NHWC"),
    # Dropout: what it drops is not to be predicted, so all or nothing is.
    case("test", "Dropout", values(3, 4), is_test=1),
    case("test, ratio", "Dropout", values(3, 4), is_test=1, ratio=0.9),
    case("test, in place", "Dropout", values(3, 4), outputs=["X0"], is_test=1),
    Case("Dropout test, mask", {"X": values(2, 3)},
         [("Dropout", ["X"], ["Y", "mask"], {"is_test": 1})], ["Y"]),
    case("ratio 0", "Dropout", values(3, 4), outputs=2, ratio=0.0, is_test=0),
    case("ratio 1", "Dropout", values(3, 4), outputs=2, ratio=1.0, is_test=0),
    case("training", "DropoutGrad", values(2, 3), np.array([[1, 0, 1], [0, 0, 1]], bool),
         ratio=0.2),
    case("test", "DropoutGrad", values(2, 3), is_test=1),
    # By channel.
    case("plain", "NCHW2NHWC", IMAGE),
    case("one dimension", "NCHW2NHWC", values(2, 3, 4)),
    case("volume", "NCHW2NHWC", values(1, 2, 3, 4, 2)),
    case("matrix", "NCHW2NHWC", values(2, 3)),
    case("int", "NCHW2NHWC", np.ones((1, 2, 3, 4), np.int32)),
    case("plain", "NHWC2NCHW", NHWC),
    case("volume", "NHWC2NCHW", values(1, 2, 3, 4, 2)),
    case("empty", "NHWC2NCHW", values(0, 2, 3, 4)),
    case("two groups", "ChannelShuffle", IMAGE, group=2),
    case("three groups", "ChannelShuffle", values(2, 6, 2, 3), group=3),
    case("NHWC", "ChannelShuffle", values(2, 2, 3, 6), group=3, order="NHWC"),
    case("one group", "ChannelShuffle", IMAGE),
    case("not divisible", "ChannelShuffle", IMAGE, group=3),
    case("three groups", "ChannelShuffleGradient", values(2, 6, 2, 3), group=3),
    case("NHWC", "ChannelShuffleGradient", values(2, 2, 3, 6), group=3, order="NHWC"),
    case("plain", "AffineChannel", IMAGE, values(4), values(4)),
    case("NHWC", "AffineChannel", NHWC, values(4), values(4), order="NHWC"),
    case("in place", "AffineChannel", IMAGE, values(4), values(4), outputs=["X0"]),
    case("plain", "AffineChannelGradient", IMAGE, values(4)),
    case("learnable", "AffineChannelGradient", IMAGE, values(2, 4, 3, 5), values(4), outputs=3,
         is_learnable=True),
    case("learnable NHWC", "AffineChannelGradient", NHWC, values(2, 3, 5, 4), values(4), outputs=3,
         is_learnable=True, order="NHWC"),
    case("plain", "ChannelStats", IMAGE, outputs=2),
    case("NHWC", "ChannelStats", NHWC, outputs=2, order="NHWC"),
    case("plain", "BatchMoments", IMAGE, outputs=2),
    case("NHWC", "BatchMoments", NHWC, outputs=2, order="NHWC"),
    case("plain", "BatchMomentsGradient", values(4), values(4), IMAGE),
    case("NHWC", "BatchMomentsGradient", values(4), values(4), NHWC, order="NHWC"),
    case("plain", "ChannelBackpropStats", IMAGE, values(4), positive(4), values(2, 4, 3, 5),
         outputs=2),
    case("plain", "ElementwiseLinear", values(3, 4), values(4), values(4)),
    case("axis", "ElementwiseLinear", values(2, 3, 4), values(4), values(4), axis=2),
    case("too short", "ElementwiseLinear", values(3, 4), values(3), values(4)),
    case("plain", "ElementwiseLinearGradient", values(3, 4), values(3, 4), values(4), outputs=3),
    case("plain", "NormalizePlanarYUV", IMAGE, values(1, 4), positive(1, 4)),
]
# fmt: on
