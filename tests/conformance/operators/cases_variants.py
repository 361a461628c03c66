# SPDX-License-Identifier: Apache-2.0
"""Orders of images, engines, operators in place, types of indices, empty and single elements,
older broadcasting, and arguments that are absent or out of range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case

f32, i32, i64 = np.float32, np.int32, np.int64
_random = np.random.RandomState(16)


def floats(*sizes: int) -> np.ndarray:
    return np.asarray(_random.randn(*sizes), f32)


def rates() -> list[Case]:
    found = []
    for n in (0, 1, 5, -1):
        at = np.array([n], i64)
        for most in (None, 0, -3, 4):
            given = {} if most is None else {"max_iter": most}
            name = f"poly {n} of {most}"
            found.append(
                case(name, "LearningRate", at, base_lr=2.0, policy="poly", power=2.0, **given)
            )
        for first, last in ((0.5, 0.1), (0.1, 0.5)):
            slope = {"num_iter_1": 2, "num_iter_2": 2, "multiplier_1": first, "multiplier_2": last}
            name = f"slope {n} from {first}"
            found.append(case(name, "LearningRate", at, base_lr=1.0, policy="slope", **slope))
    return found


def quantized(
    op_type: str,
    name: str,
    *inputs: tuple[np.ndarray, float, int],
    refused: bool = False,
    **args: Any,
) -> Case:
    """An operator on Int8 tensors, whose result is dequantized; one that crashes is the last."""
    steps: list[Any] = []
    for i, (x, scale, zero_point) in enumerate(inputs):
        filled = {"shape": x.shape, "Y_scale": scale, "Y_zero_point": zero_point}
        kind = "Int8GivenTensorFill" if x.dtype == np.uint8 else "Int8GivenIntTensorFill"
        values = x.tobytes() if x.dtype == np.uint8 else x.reshape(-1).tolist()
        steps.append((kind, [], [f"X{i}"], {**filled, "values": values}))
    made = ["Y", "old"] if op_type == "Int8Reshape" else ["Y"]
    steps.append((op_type, [f"X{i}" for i in range(len(inputs))], made, args))
    if not refused:
        steps.append(("Int8Dequantize", ["Y"], ["found"], {}))
    return Case(f"{op_type} {name}", {}, steps, [] if refused else ["found"])


def int8_cases() -> list[Case]:
    found = []
    image, wide = np.arange(24, dtype=np.uint8).reshape(2, 3, 2, 2), np.uint8(200)
    others = {"first": image[:1] + wide, "second": image[:, :1] + wide, "last": image[..., :1]}
    own = {"Y_scale": 0.5, "Y_zero_point": 10}
    for name, other in others.items():
        for given in ({}, {"order": "NCHW"}, {"order": "NHWC"}, {"axis": 0}, {"axis": -1}):
            pair = (image, 0.5, 10), (other, 0.5, 10)
            axis = given.get("axis", {"NCHW": 1, "NHWC": 3}.get(given.get("order"), 0))
            refused = axis != {"first": 0, "second": 1, "last": 3}[name]
            args = {**own, **given, "refused": refused}
            found.append(quantized("Int8Concat", f"{name} {given}", *pair, **args))
    pair = (image, 0.5, 10), (image, 0.25, 10)
    found.append(quantized("Int8Concat", "another scale", *pair, **own, axis=1))
    matrix, weight = np.array([[250, 3, 20], [7, 90, 128]], np.uint8), np.arange(6, dtype=np.uint8)
    for z in (-300, -5, 0, 255, 256, 300):
        x = matrix, 0.05, z
        refused = not 0 <= z <= 255
        same = {"Y_scale": 0.05, "Y_zero_point": z}
        shares = {"Y_scale": 1 / 256, "Y_zero_point": 0}
        found += [
            quantized("Int8Relu", f"zero point {z}", x, **same, refused=refused),
            quantized("Int8LeakyRelu", f"zero point {z}", x, **same, alpha=0.1, refused=refused),
            quantized("Int8Sigmoid", f"zero point {z}", x, **shares),
            quantized("Int8Softmax", f"zero point {z}", x, **shares),
            quantized(
                "Int8FC",
                f"zero point {z}",
                x,
                (weight.reshape(2, 3), 0.5, 2),
                (np.array([3, -4], i32), 0.025, 0),
                Y_scale=5.0,
                Y_zero_point=z,
            ),
        ]
    for scale, z in ((1.0, 0), (0.5, 0), (1.0, 3)):
        name, x = f"scale {scale}, zero point {z}, none in the arguments", (image, scale, z)
        given = {"refused": (scale, z) != (1.0, 0)}
        found += [
            quantized("Int8Flatten", name, x, **given),
            quantized("Int8Reshape", name, x, shape=[-1], **given),
            quantized("Int8Transpose", name, x, axes=[0, 2, 3, 1], **given),
            quantized("Int8Slice", name, x, starts=[0, 1, 0, 0], ends=[-1, -1, -1, -1], **given),
            quantized("Int8ResizeNearest", name, x, width_scale=2.0, height_scale=2.0, **given),
        ]
    return found


def chosen() -> list[Case]:
    """Gradients of TopK with equal indices, boxes without a limit, and labels out of range."""
    found = []
    for name, rows in {
        "equal": [[0, 0], [1, 2]],
        "last": [[0, 1], [2, 2]],
        "none": [[0, -1], [1, 1]],
    }.items():
        indices = np.array(rows, i64)
        x = floats(2, 3)
        found.append(case(f"{name} indices", "TopKGradient", floats(2, 2), indices, x))
        found.append(
            case(
                f"{name} indices, axis 0",
                "TopKGradient",
                floats(2, 2),
                indices,
                floats(3, 2),
                axis=0,
            )
        )
    boxes = [np.abs(np.cumsum(floats(n, 5), 1)) for n in (3, 2)]
    scores = [np.array([0.1, 0.9, 0.4], f32), np.array([0.7, 0.2], f32)]
    for most in (0, 2, 100):
        levels = {"rpn_min_level": 2, "rpn_max_level": 3, "rpn_post_nms_topN": most}
        found.append(case(f"most {most}", "CollectRpnProposals", *boxes, *scores, **levels))
    x = np.abs(floats(2, 3))
    for name, labels in {"more": [[0, 0.5, 1.5]] * 2, "less": [[-0.1, 0.5, 1]] * 2}.items():
        found.append(case(f"labels of {name}", "CrossEntropy", x, np.array(labels, f32)))
    found.append(
        case("labels that are no numbers", "CrossEntropy", x, np.full((2, 3), np.nan, f32))
    )
    cores = floats(2, 1, 2, 2), floats(2, 2, 2, 2), floats(2, 2, 2, 1)
    sizes = {"factor_i": [2] * 3, "factor_j": [2] * 3, "ranks": [1, 2, 2, 1], "emb_size": 8}
    for lengths in ([], [0, 0], [2, 1], [1, 1], [0, 3]):
        indices = np.array([0, 1, 5] if sum(lengths) else [], i64)
        name = f"lengths {lengths}"
        inputs = *cores, indices, np.array(lengths, i32)
        found.append(case(name, "TTSparseLengthsSum", *inputs, outputs=4, **sizes))
    return found


def images() -> list[Case]:
    found = []
    for order, engine, high in (
        ("NCHW", "EIGEN", 5),
        ("NHWC", "CUDNN", 5),
        ("NHWC", "", 1),
        ("NCHW", "CUDNN", 1),
    ):
        x = floats(2, 4, high, 3) if order == "NCHW" else floats(2, high, 3, 4)
        name, given = f"{order} {engine} {high}", {"order": order, "engine": engine}
        w = floats(3, 4, 1, 1) if order == "NCHW" else floats(3, 1, 1, 4)
        found += [
            case(name, "Conv", x, w, floats(3), kernel=1, **given),
            case(name, "MaxPool", x, kernel=1, stride=2, **given),
            case(name, "AveragePool", x, kernel=1, pad=0, **given),
            case(name, "LRN", x, size=3, alpha=0.1, beta=0.75, **given),
            case(name, "SpatialBN", x, *np.abs(floats(4, 4)), is_test=1, **given),
            case(name, "PRelu", x, floats(4), **given),
            case(name, "Concat", x, x, outputs=2, **given),
            case(name, "Split", x, outputs=2, **given),
            case(name, "ChannelShuffle", x, group=2, kernel=1, **given),
            case(name, "AffineChannel", x, floats(4), floats(4), **given),
            case(name, "ResizeNearest", x, width_scale=2.0, height_scale=1.5, **given),
        ]
    return found


def few() -> list[Case]:
    """Operators in place, on no element and on one, and with int32 and int64 indices."""
    found = []
    for op_type in ("Relu", "Sigmoid", "Tanh", "Sqr", "Softsign", "Elu", "Selu", "Abs", "Negative"):
        for x in (floats(0), floats(1), floats(2, 0), floats()):
            found.append(case(f"{x.shape}", op_type, x))
            found.append(case(f"{x.shape} in place", op_type, x, outputs=["X0"]))
    for dtype in (i32, i64):
        for n in (0, 1, 3):
            rows, data = np.arange(n, dtype=dtype) % 2, floats(4, 2)
            name = f"{n} {np.dtype(dtype)}"
            lengths = np.array([n, 0], i32)
            found += [
                case(name, "Gather", data, rows),
                case(name, "BatchGather", floats(2, 4, 2), rows),
                case(name, "SparseToDense", rows, floats(n, 2)),
                case(name, "SparseLengthsSum", data, rows, lengths),
                case(name, "SparseLengthsMean", data, rows, lengths),
                case(name, "Unique", rows, outputs=2),
                case(name, "SegmentIdsToLengths", np.sort(rows)),
                case(name, "UnsortedSegmentSum", floats(n, 2), rows, num_segments=3),
            ]
    return found


def broadcasts() -> list[Case]:
    found = []
    for op_type in ("Add", "Sub", "Mul", "Div", "LT", "EQ"):
        for axis, sizes in ((None, (4,)), (None, (1,)), (0, (2, 3)), (1, (3,)), (1, (3, 1))):
            given = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
            inputs = floats(2, 3, 4), floats(*sizes)
            found.append(case(f"axis {axis} of {sizes}", op_type, *inputs, **given))
        given = {"broadcast": 1, "axis_str": "C", "order": "NCHW"}
        found.append(case("axis by name", op_type, floats(2, 3, 4), floats(3), **given))
        found.append(case("of nothing", op_type, floats(0, 3), floats(0, 1)))
    return found


CASES = [*rates(), *int8_cases(), *chosen(), *images(), *few(), *broadcasts()]
