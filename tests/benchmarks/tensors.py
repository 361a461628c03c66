# SPDX-License-Identifier: Apache-2.0
"""Making tensors, asking for their sizes and viewing them, over the same in torch."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bridge import at
from tests.benchmarks.harness import Effort, Row, compare, loop

VIEWS = {
    "`transpose(0, 1)`": "x.transpose(0, 1)",
    "`view(6, 4)`": "x.view(6, 4)",
    "`x[0:2]`": "x[0:2]",
}


def rows(effort: Effort) -> Iterator[Row]:
    """Measure each on a small tensor, torch's on one of the same shape."""
    yield Row(
        "`at.empty((64, 64))`",
        "`torch.empty((64, 64))`",
        0.3,
        0.18,
        compare(
            loop("empty((64, 64))", empty=at.empty),
            loop("empty((64, 64))", empty=torch.empty),
            effort,
        ),
    )
    x, t = at.zeros((4, 6)), torch.zeros((4, 6))
    sizes = compare(loop("x.sizes()", x=x), loop("t.shape", t=t), effort)
    yield Row("`sizes()`", "`t.shape`", 0.5, 0.25, sizes)
    for what, statement in VIEWS.items():
        outcome = compare(loop(statement, x=x), loop(statement, x=t), effort)
        yield Row(what, "torch's", 0.25, 0.12, outcome)
