# SPDX-License-Identifier: Apache-2.0
"""Matrix products and the layers that are one."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(11)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


CASES: list[Case] = [
    case("matrices", "FC", values(3, 4), values(5, 4), values(5)),
    case("image", "FC", values(2, 3, 2, 2), values(5, 12), values(5)),
    case("axis", "FC", values(2, 3, 4), values(5, 4), values(5), axis=2),
    case("axis 0", "FC", values(2, 3), values(5, 6), values(5), axis=0),
    case("negative axis", "FC", values(2, 3, 4), values(5, 4), values(5), axis=-1),
    case("axis_w", "FC", values(2, 4), values(1, 1, 5, 4), values(5), axis_w=3),
    case("weights of four dimensions", "FC", values(2, 12), values(5, 3, 2, 2), values(5)),
    case("no rows", "FC", values(0, 4), values(5, 4), values(5)),
    case("one dimension", "FC", values(4), values(4, 1), values(4), axis=0),
    case("inner sizes differ", "FC", values(3, 4), values(5, 3), values(5)),
    case("bias too long", "FC", values(3, 4), values(5, 4), values(6)),
    case("bias of two dimensions", "FC", values(3, 4), values(5, 4), values(5, 1)),
    case("no bias", "FC", values(3, 4), values(5, 4)),
    case("double", "FC", values(3, 4).astype(np.float64), values(5, 4), values(5)),
    case("matrices", "FCTransposed", values(3, 4), values(4, 5), values(5)),
    case("axis", "FCTransposed", values(2, 3, 4), values(4, 5), values(5), axis=2),
    case("axis_w", "FCTransposed", values(2, 6), values(2, 3, 5), values(5), axis_w=2),
    case("all", "FCGradient", values(3, 4), values(5, 4), values(3, 5), outputs=3),
    case("parameters", "FCGradient", values(3, 4), values(5, 4), values(3, 5), outputs=2),
    case("axis", "FCGradient", values(2, 3, 4), values(5, 4), values(2, 3, 5), outputs=3, axis=2),
    case("no rows", "FCGradient", values(0, 4), values(5, 4), values(0, 5), outputs=3),
    case("all", "FCTransposedGradient", values(3, 4), values(4, 5), values(3, 5), outputs=3),
    case("matrices", "MatMul", values(3, 4), values(4, 5)),
    case("trans_a", "MatMul", values(4, 3), values(4, 5), trans_a=1),
    case("trans_b", "MatMul", values(3, 4), values(5, 4), trans_b=1),
    case("both", "MatMul", values(4, 3), values(5, 4), trans_a=1, trans_b=1),
    case("axes", "MatMul", values(2, 3, 4), values(4, 2, 5), axis_a=2, axis_b=1),
    case("axes, transposed", "MatMul", values(2, 2, 3), values(4, 2, 5), axis_a=2, trans_a=1),
    case("negative axis", "MatMul", values(2, 3, 4), values(4, 5), axis_a=-1),
    case("shape given", "MatMul", values(3, 4), values(4, 5), values(5, 3)),
    case("vectors", "MatMul", values(3), values(1, 3)),
    case("sizes differ", "MatMul", values(3, 4), values(3, 5)),
    case("empty", "MatMul", values(0, 4), values(4, 5)),
    case("empty inner", "MatMul", values(3, 0), values(0, 2)),
    case("batch", "BatchMatMul", values(2, 3, 4), values(2, 4, 5)),
    case("two batches", "BatchMatMul", values(2, 3, 2, 4), values(2, 3, 4, 5)),
    case("matrices", "BatchMatMul", values(3, 4), values(4, 5)),
    case("trans_a", "BatchMatMul", values(2, 4, 3), values(2, 4, 5), trans_a=1),
    case("trans_b", "BatchMatMul", values(2, 3, 4), values(2, 5, 4), trans_b=1),
    case("both", "BatchMatMul", values(2, 4, 3), values(2, 5, 4), trans_a=1, trans_b=1),
    case("broadcast B", "BatchMatMul", values(2, 3, 4), values(4, 5), broadcast=1),
    case("broadcast A", "BatchMatMul", values(3, 4), values(2, 4, 5), broadcast=1),
    case(
        "broadcast A, trans_b", "BatchMatMul", values(1, 4), values(2, 5, 4), broadcast=1, trans_b=1
    ),
    case(
        "broadcast B, trans_a", "BatchMatMul", values(2, 4, 3), values(4, 5), broadcast=1, trans_a=1
    ),
    case("broadcast both", "BatchMatMul", values(2, 1, 3, 4), values(5, 4, 2), broadcast=1),
    case("not broadcast", "BatchMatMul", values(2, 3, 4), values(4, 5)),
    case("batch of one, not broadcast", "BatchMatMul", values(1, 3, 4), values(4, 5)),
    case("batches differ", "BatchMatMul", values(2, 3, 4), values(3, 4, 5), broadcast=1),
    case("vectors", "BatchMatMul", values(4), values(4)),
    case("vector and matrix", "BatchMatMul", values(4), values(4, 5)),
    case("vector and batch", "BatchMatMul", values(4), values(2, 4, 5)),
    case("vector and transposed batch", "BatchMatMul", values(4), values(2, 5, 4), trans_b=1),
    case("matrix and vector", "BatchMatMul", values(3, 4), values(4)),
    case("batch and vector", "BatchMatMul", values(2, 3, 4), values(4)),
    case("inner sizes differ", "BatchMatMul", values(2, 3, 4), values(2, 3, 5)),
    case("empty", "BatchMatMul", values(0, 3, 4), values(0, 4, 5)),
]
