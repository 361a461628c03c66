# SPDX-License-Identifier: Apache-2.0
"""Optimizers together with the gradient of a look-up, and YellowFin."""

from __future__ import annotations

import numpy as np

from .case import Case

RANDOM = np.random.RandomState(12)
ROWS, WIDTH = 7, 5
LENGTHS = np.array([2, 0, 3, 1], np.int32)
KINDS = [
    f"{rows}SparseAdagradFusedWithSparseLengths{kind}Gradient{approximate}"
    for rows in ("", "RowWise")
    for kind in ("Sum", "Mean", "WeightedSum")
    for approximate in ("", "Approx")
]


def floats(*sizes: int) -> np.ndarray:
    """Values around zero."""
    return RANDOM.randn(*sizes).astype(np.float32)


def fused(
    name: str,
    op_type: str,
    indices: list[int],
    width: int = WIDTH,
    wide: bool = True,
    **args: float,
) -> Case:
    """A step on the rows at `indices`, of which segments have one gradient each."""
    moment = (ROWS,) if op_type.startswith("RowWise") else (ROWS, width)
    feeds = {"X0": floats(ROWS, width), "X1": np.abs(floats(*moment))}
    if "Weighted" in op_type:
        feeds["weights"] = floats(len(indices))
    feeds["indices"] = np.array(indices, np.int64 if wide else np.int32)
    feeds["grad"] = floats(len(LENGTHS), width)
    feeds["lr"] = floats(1)
    feeds["lengths"] = LENGTHS
    outputs = ["X0", "X1"] + ["Y"] * ("Weighted" in op_type)
    return Case(f"{op_type} {name}", feeds, [(op_type, list(feeds), outputs, args)])


def yellow_fin(name: str, n: int = 4, steps: int = 3, **args: float) -> Case:
    """Several steps, each with another gradient."""
    feeds = {
        "param": floats(n),
        "moment": floats(n),
        "lr_avg": np.full(1, 0.1, np.float32),
        "mu_avg": np.full(1, 0.5, np.float32),
        "curv_win": np.zeros(20, np.float32),
        "g_avg": np.zeros(n, np.float32),
        "g2_avg": np.zeros(n, np.float32),
        "scalars": np.zeros(5, np.float32),
    }
    state, made = list(feeds), []
    for step in range(steps):
        feeds[f"grad{step}"] = floats(n)
        feeds[f"iteration{step}"] = np.full(1, step + 1)
        inputs = [*state, f"grad{step}", f"iteration{step}"]
        made.append(("YellowFin", inputs, state, args))
    return Case(f"YellowFin {name}", feeds, made)


CASES = [
    *[fused("plain", op_type, [1, 4, 0, 3, 6, 2]) for op_type in KINDS],
    *[
        fused("wide rows, int32", op_type, [1, 4, 0, 3, 6, 2], 70, wide=False, epsilon=1e-3)
        for op_type in KINDS
    ],
    *[fused("repeated rows", op_type, [1, 4, 1, 1, 0, 4]) for op_type in KINDS],
    *[fused("decayed weights", op_type, [1, 4, 0, 3, 6, 2], weight_decay=0.2) for op_type in KINDS],
    *[fused("out of range", op_type, [1, 4, 0, 3, 7, 2]) for op_type in KINDS],
    *[fused("one column", op_type, [1, 4, 0, 3, 6, 2], 1) for op_type in KINDS],
    yellow_fin("one step", steps=1),
    yellow_fin("two steps", steps=2),
    yellow_fin("many steps", steps=30),
    yellow_fin("settings", steps=4, beta=0.9, curv_win_width=3, epsilon=0.001),
    yellow_fin("biased", steps=4, zero_debias=False),
    yellow_fin("nesterov", steps=4, nesterov=True),
]
