# SPDX-License-Identifier: Apache-2.0
"""Learning rates and steps of training."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case

_random = np.random.RandomState(31)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return _random.uniform(0.1, 2.0, shape).astype(np.float32)


def iteration(n: int) -> np.ndarray:
    return np.array([n], np.int64)


RATE = np.array([-0.1], np.float32)
ROWS = np.array([3, 0, 2], np.int64)
TWICE = np.array([1, 3, 1, 1], np.int32)

POLICIES: list[tuple[str, dict[str, Any]]] = [
    ("fixed", {}),
    ("alter", {"active_period": 3, "inactive_period": 2, "active_first": True}),
    ("alter", {"active_period": 3, "inactive_period": 2, "active_first": False}),
    (
        "hill",
        {
            "num_iter": 5,
            "start_multiplier": 0.1,
            "gamma": 0.1,
            "power": 0.5,
            "end_multiplier": 0.01,
        },
    ),
    ("slope", {"num_iter_1": 4, "multiplier_1": 2.0, "num_iter_2": 12, "multiplier_2": 0.5}),
    ("step", {"stepsize": 3, "gamma": 0.5}),
    ("exp", {"gamma": 0.9}),
    ("gate", {"num_iter": 6, "multiplier_1": 0.5, "multiplier_2": 2.0}),
    ("inv", {"gamma": 0.1, "power": 0.75}),
    ("poly", {"max_iter": 40, "power": 2.0}),
    ("linearWarmup", {"num_iter": 10, "start_multiplier": 0.2}),
    ("constantWarmup", {"num_iter": 10, "multiplier": 0.3}),
    ("pieceWarmup", {"m1": 0.1, "n1": 3, "m2": 0.4, "n2": 10, "m3": 0.9}),
    ("cyclical", {"max_lr": 0.5, "stepsize": 4, "decay": 0.9}),
    ("cosine", {"max_lr": 0.5, "min_lr": 0.1, "period": 5, "t_mult": 1.0, "lr_shrink": 0.9}),
    ("cosine", {"max_lr": 0.5, "min_lr": 0.1, "period": 3, "t_mult": 2.0, "lr_shrink": 0.9}),
    (
        "constantThenLinearWarmup",
        {
            "start_warmup_multiplier": 0.2,
            "constant_warmup_num_iter": 3,
            "linear_warmup_num_iter": 5,
        },
    ),
    (
        "compositeCosine",
        {
            "start_warmup_multiplier": 0.2,
            "constant_warmup_num_iter": 3,
            "linear_warmup_num_iter": 5,
            "cosine_max_lr": 0.5,
            "cosine_min_lr": 0.1,
            "cosine_period": 4,
            "cosine_t_mult": 1.0,
            "cosine_lr_shrink": 0.8,
        },
    ),
    (
        "compositeCyclical",
        {
            "start_warmup_multiplier": 0.2,
            "constant_warmup_num_iter": 3,
            "linear_warmup_num_iter": 5,
            "cyclical_max_lr": 0.5,
            "cyclical_step_size": 3,
            "cyclical_decay": 0.9,
        },
    ),
    (
        "composite",
        {
            "sub_policy_num_iters": [4, 100],
            "sub_policy_0_policy": "fixed",
            "sub_policy_0_lr_scale": 0.3,
            "sub_policy_1_policy": "step",
            "sub_policy_1_stepsize": 2,
            "sub_policy_1_gamma": 0.5,
        },
    ),
]


def in_place(name: str, op: str, inputs: list[np.ndarray], outputs: list[str], **args: Any) -> Case:
    feeds = {f"X{i}": value for i, value in enumerate(inputs)}
    return Case(f"{op} {name}", feeds, [(op, list(feeds), outputs, args)])


SPARSE = [
    ("SparseAdagrad", ["w", "h", "i", "g", "lr"], ["X0", "X1"]),
    ("RowWiseSparseAdagrad", ["w", "r", "i", "g", "lr"], ["X0", "X1"]),
    ("SparseAdam", ["w", "m", "h", "i", "g", "lr", "n"], ["X0", "X1", "X2"]),
    ("SparseAdam", ["w", "m", "h", "i", "g", "lr", "n"], ["X0", "X1", "X2", "Y"]),
    ("RowWiseSparseAdam", ["w", "m", "r", "i", "g", "lr", "n"], ["X0", "X1", "X2"]),
    ("RowWiseSparseAdam", ["w", "m", "r", "i", "g", "lr", "n"], ["X0", "X1", "X2", "Y"]),
    ("SparseAdadelta", ["w", "h", "h", "i", "g", "lr"], ["X0", "X1", "X2"]),
    ("SparseFtrl", ["w", "p", "i", "g"], ["X0", "X1"]),
    ("SparseFtrl", ["w", "p", "i", "g", "alpha"], ["X0", "X1"]),
    ("SparseWngrad", ["w", "one", "i", "g", "lr"], ["X0", "X1"]),
    ("SparseStorm", ["w", "m", "one", "g", "i", "lr"], ["X0", "X1", "X2"]),
    ("SparseMomentumSGDUpdate", ["g", "m", "lr", "w", "i"], ["X0", "X1", "X3"]),
]


def sparse(op: str, inputs: list[str], outputs: list[str], rows: np.ndarray, **args: Any) -> Case:
    made = {
        "w": lambda: values(5, 4),
        "m": lambda: values(5, 4),
        "h": lambda: positive(5, 4),
        "r": lambda: positive(5),
        "p": lambda: positive(5, 4, 2),
        "i": lambda: rows,
        "g": lambda: values(len(rows), 4),
        "lr": lambda: RATE,
        "n": lambda: iteration(7),
        "one": lambda: positive(1),
        "alpha": lambda: np.array([0.1], np.float32),
    }
    said = " ".join([str(len(inputs)), str(len(outputs)), str(len(rows)), *map(str, args)])
    return in_place(said, op, [made[name]() for name in inputs], outputs, **args)


# fmt: off
CASES: list[Case] = [
    *[
        case(
            f"{policy} {i} at {n}", "LearningRate", iteration(n), base_lr=0.2, policy=policy, **args
        )
        for i, (policy, args) in enumerate(POLICIES)
        for n in (1, 4, 9, 26)
    ],
    case("no policy", "LearningRate", iteration(1), base_lr=0.2),
    case("no rate", "LearningRate", iteration(1), policy="fixed"),
    case("unknown", "LearningRate", iteration(1), base_lr=0.2, policy="magic"),
    in_place("counts", "Iter", [iteration(41)], ["X0"]),
    in_place("negative", "Iter", [iteration(-1)], ["X0"]),
    in_place("several", "Iter", [np.array([1, 2], np.int64)], ["X0"]),
    Case("Iter begins", {}, [("Iter", [], ["n"], {})]),
    *[
        case(name, "MomentumSGD", values(3, 4), values(3, 4), RATE, outputs=2, **args)
        for name, args in (
            ("plain", {}),
            ("momentum", {"momentum": 0.9}),
            ("nesterov", {"momentum": 0.9, "nesterov": True}),
        )
    ],
    *[
        in_place(
            f"{args}",
            "MomentumSGDUpdate",
            [values(3, 4), values(3, 4), RATE, values(3, 4)],
            ["X0", "X1", "X3"],
            **args,
        )
        for args in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": 1})
    ],
    *[
        case(
            f"{n} {outputs} {list(args)}",
            "Adam",
            values(3, 4),
            values(3, 4),
            positive(3, 4),
            values(3, 4),
            RATE,
            iteration(n),
            outputs=outputs,
            **args,
        )
        for n, outputs, args in (
            (0, 3, {}),
            (100, 4, {}),
            (5, 3, {"beta1": 0.8, "beta2": 0.99, "epsilon": 0.1}),
        )
    ],
    in_place("in place", "Adam", [values(4), values(4), positive(4), values(4), RATE, iteration(3)],
             ["X0", "X1", "X2"]),
    case("other sizes", "Adam", values(3), values(3), positive(3), values(4), RATE, iteration(0),
         outputs=3),
    *[
        case(
            f"{outputs} {list(args)}",
            "Adagrad",
            values(3, 4),
            positive(3, 4),
            values(3, 4),
            RATE,
            outputs=outputs,
            **args,
        )
        for outputs, args in (
            (2, {}),
            (3, {"decay": 0.9}),
            (4, {"epsilon": 0.1, "weight_decay": 0.2}),
        )
    ],
    case("plain", "RmsProp", values(3, 4), positive(3, 4), values(3, 4), RATE, outputs=3),
    case("momentum", "RmsProp", values(3, 4), positive(3, 4), values(3, 4), RATE, outputs=3,
         decay=0.8, momentum=0.5, epsilon=0.01),
    case("plain", "Adadelta", values(3, 4), positive(3, 4), positive(3, 4), values(3, 4), RATE,
         outputs=3),
    case("plain", "Ftrl", values(3), positive(3, 2), values(3), outputs=2),
    case("arguments", "Ftrl", values(3), positive(3, 2), values(3), outputs=2, alpha=0.1, beta=0.5,
         lambda1=0.3, lambda2=0.01),
    case("input", "Ftrl", values(3), positive(3, 2), values(3), np.array([0.1], np.float32),
         outputs=2),
    *[
        case(f"{outputs}", "Wngrad", values(3, 4), positive(1), values(3, 4), RATE, outputs=outputs)
        for outputs in (2, 3, 4)
    ],
    case("plain", "Storm", values(3, 4), values(3, 4), positive(1), values(3, 4), RATE, outputs=3),
    case("arguments", "Storm", values(3, 4), values(3, 4), positive(1), values(3, 4), RATE,
         outputs=3, momentum=2.0, beta=0.5),
    case("plain", "Lars", values(3, 4), values(3, 4), *[positive(1) for _ in range(3)]),
    case(
        "arguments",
        "Lars",
        values(3, 4),
        values(3, 4),
        *[positive(1) for _ in range(3)],
        offset=0.1,
        lr_min=0.3,
    ),
    case("zero", "Lars", np.zeros(3, np.float32), values(3), *[positive(1) for _ in range(3)]),
    case("at the step", "WeightScale", values(4), iteration(5), stepsize=3, scale=0.5),
    case("between", "WeightScale", values(4), iteration(6), stepsize=3, scale=0.5),
    case("after", "WeightScale", values(4), iteration(5), stepsize=3, scale=0.5,
         upper_bound_iter=4),
    case("plain", "LearningRateAdaption", RATE, values(4), values(4)),
    case("not normalized", "LearningRateAdaption", RATE, values(4), values(4), lr_alpha=0.1,
         normalized_lr_adaption=False),
    *[
        sparse(op, inputs, outputs, rows)
        for op, inputs, outputs in SPARSE
        for rows in (ROWS, TWICE, ROWS[:0])
    ],
    sparse("SparseAdagrad", ["w", "h", "i", "g", "lr"], ["X0", "X1"], ROWS, weight_decay=0.3),
    sparse("SparseMomentumSGDUpdate", ["g", "m", "lr", "w", "i"], ["X0", "X1", "X3"], ROWS,
           momentum=0.9, nesterov=True),
    sparse("SparseAdam", ["w", "m", "h", "i", "g", "lr", "n"], ["X0", "X1", "X2"], ROWS,
           enableRAdam=True),
]
# fmt: on
