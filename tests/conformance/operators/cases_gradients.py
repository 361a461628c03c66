# SPDX-License-Identifier: Apache-2.0
"""Gradients of elementwise and reducing operators, Moments, and steps of recurrent networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case

_random = np.random.RandomState(37)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def inside(*shape: int) -> np.ndarray:
    return _random.uniform(-0.9, 0.9, shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return _random.uniform(0.3, 2.0, shape).astype(np.float32)


def ints(*items: int) -> np.ndarray:
    return np.array(items, np.int32)


def reduced(op: str, x: np.ndarray, **args: Any) -> Case:
    """A reducing operator, and the gradient of what it makes."""
    steps = [(op, ["X"], ["Y"], args), (f"{op}Gradient", ["Y", "X", "Y"], ["dX"], args)]
    return Case(f"{op}Gradient {args}", {"X": x}, steps)


FROM_X = ["Abs", "Acos", "Asin", "Atan", "Cos", "Sin", "Tan", "Erf"]
FROM_DY = ["Cosh", "Sinh", "Cube", "Cbrt", "Rsqrt"]
STATE = (1, 4, 3)

OLD = np.random.RandomState(30).uniform(1, 3, (3, 4, 5)).astype(np.float32)
# fmt: off
CASES: list[Case] = [
    *[case("values", f"{name}Gradient", inside(3, 4), values(3, 4)) for name in FROM_X],
    *[case("values", f"{name}Gradient", values(3, 4), positive(3, 4)) for name in FROM_DY],
    case("values", "ReciprocalGradient", positive(3, 4), values(3, 4)),
    case("zero", "AbsGradient", np.zeros(2, np.float32), values(2)),
    case("plain", "ClipGradient", inside(3, 4), values(3, 4), min=-0.5, max=0.5),
    case("edges", "ClipGradient", np.array([-0.5, 0.5, 0], np.float32), values(3), min=-0.5,
         max=0.5),
    *[
        case(name, f"{op}Gradient", values(*shape), positive(*a), positive(*b), outputs=2, **args)
        for op in ("Add", "Sub", "Mul")
        for name, shape, a, b, args in (
            ("one shape", (3, 4), (3, 4), (3, 4), {}),
            ("row", (3, 4), (3, 4), (4,), {}),
            ("column", (3, 4), (3, 1), (3, 4), {}),
            ("legacy", (2, 3, 4), (2, 3, 4), (3, 4), {"broadcast": 1}),
            ("legacy, axis", (2, 3, 4), (2, 3, 4), (3,), {"broadcast": 1, "axis": 1}),
            ("legacy, number", (2, 3), (2, 3), (1,), {"broadcast": 1}),
        )
    ],
    *[
        case(
            name,
            "DivGradient",
            values(*shape),
            positive(*a),
            positive(*b),
            positive(*shape),
            outputs=2,
            **args,
        )
        for name, shape, a, b, args in (
            ("one shape", (3, 4), (3, 4), (3, 4), {}),
            ("row", (3, 4), (3, 4), (4,), {}),
            ("legacy, axis", (2, 3, 4), (2, 3, 4), (3,), {"broadcast": 1, "axis": 1}),
        )
    ],
    *[
        case(
            "three",
            f"{op}Gradient",
            ints(1, 2, 3).astype(np.float32),
            values(3),
            np.array([1, 0, 3], np.float32),
            np.array([0, 2, 3], np.float32),
            outputs=2,
        )
        for op in ("Max", "Min")
    ],
    case("three", "MeanGradient", values(3, 4), outputs=3),
    case("plain", "WeightedSumGradient", values(3), values(3), values(1), values(3), values(1),
         outputs=2),
    case("on weights", "WeightedSumGradient", values(3), values(3), values(1), values(3), values(1),
         outputs=4, grad_on_w=True),
    *[
        reduced(op, values(2, 3, 4), **args)
        for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2")
        for args in ({}, {"axes": [1]}, {"axes": [0, 2]}, {"axes": [2], "keepdims": 0})
    ],
    *[
        case(f"{n}", f"{op}Gradient", values(*shape), values(2, 3, 4), num_reduce_dim=n)
        for op, n, shape in (
            ("ReduceFrontSum", 1, (3, 4)),
            ("ReduceFrontSum", 2, (4,)),
            ("ReduceFrontMean", 1, (3, 4)),
            ("ReduceFrontMean", 2, (4,)),
            ("ReduceBackSum", 1, (2, 3)),
            ("ReduceBackSum", 2, (2,)),
            ("ReduceBackMean", 1, (2, 3)),
            ("ReduceBackMean", 2, (2,)),
        )
    ],
    case("lengths", "ReduceFrontSumGradient", values(4), values(3, 4), ints(2, 3, 1, 1)),
    case("lengths", "ReduceFrontMeanGradient", values(4), values(3, 4), ints(2, 3, 1, 1)),
    case("lengths", "ReduceBackSumGradient", values(3), values(3, 4), ints(2, 3, 1)),
    case("lengths", "ReduceBackMeanGradient", values(3), values(3, 4), ints(2, 3, 1)),
    *[
        Case(
            f"{op}Gradient plain",
            {"X": values(3, 4)},
            [(op, ["X"], ["Y"], {}), (f"{op}Gradient", ["Y", "X", "Y"], ["dX"], {})],
        )
        for op in ("ReduceFrontMax", "ReduceBackMax")
    ],
    *[
        Case(
            f"{op}Gradient plain",
            {"X": values(2, 3, 4)},
            [(op, ["X"], ["Y"], {}), (f"{op}Gradient", ["X", "Y", "Y"], ["dX"], {})],
        )
        for op in ("RowwiseMax", "ColwiseMax")
    ],
    case("plain", "SumElementsGradient", values(3), np.array(0.5, np.float32)),
    case("average", "SumElementsGradient", values(3), np.array(0.5, np.float32), average=True),
    *[
        case(f"{args}", "Moments", values(2, 3, 4), outputs=2, **args)
        for args in (
            {},
            {"axes": [1]},
            {"axes": [0, 2]},
            {"axes": [2], "keepdims": 0},
            {"keepdims": 0},
        )
    ],
    case("plain", "MomentsGradient", values(2, 1, 4), values(2, 1, 4), values(2, 3, 4),
         values(2, 1, 4), axes=[1]),
    *[
        case(
            f"{args}",
            "LSTMUnit",
            values(*STATE),
            values(*STATE),
            values(1, 4, 12),
            ints(3, 1, 2, 5),
            ints(2),
            outputs=2,
            **args,
        )
        for args in ({}, {"forget_bias": 0.5}, {"drop_states": True})
    ],
    case("without lengths", "LSTMUnit", values(*STATE), values(*STATE), values(1, 4, 12), ints(2),
         outputs=2, sequence_lengths=False),
    case("other sizes", "LSTMUnit", values(*STATE), values(*STATE), values(1, 4, 9),
         ints(3, 1, 2, 5), ints(2), outputs=2),
    *[
        case(
            f"{args}",
            "LSTMUnitGradient",
            values(*STATE),
            values(*STATE),
            values(1, 4, 12),
            ints(3, 1, 2, 5),
            ints(2),
            *[values(*STATE) for _ in range(4)],
            outputs=3,
            **args,
        )
        for args in ({}, {"forget_bias": 0.5}, {"drop_states": True})
    ],
    *[
        case(
            f"{args}", "GRUUnit", values(*STATE), values(1, 4, 9), ints(3, 1, 2, 5), ints(2), **args
        )
        for args in ({}, {"drop_states": True})
    ],
    case("without lengths", "GRUUnit", values(*STATE), values(1, 4, 9), ints(2),
         sequence_lengths=False),
    *[
        case(
            f"{args}",
            "GRUUnitGradient",
            values(*STATE),
            values(1, 4, 9),
            ints(3, 1, 2, 5),
            ints(2),
            values(*STATE),
            values(*STATE),
            outputs=2,
            **args,
        )
        for args in ({}, {"drop_states": True})
    ],
    case("old way", "DivGradient", *OLD, outputs=2),
    case("old way broadcast", "DivGradient", OLD[0][0], OLD[1], OLD[2], outputs=2),
    case("old way integers", "DivGradient", *(9 * OLD).astype(int), outputs=2),
    case("integers", "DivGradient", *(9 * OLD[[2, 2, 0, 1]]).astype(int), outputs=2),
]
# fmt: on
