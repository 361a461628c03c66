# SPDX-License-Identifier: Apache-2.0
"""A tree in one call, over a call for each of its leaves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import bridge
from bridge import at
from tests.benchmarks.harness import Case, Effort, Row, loop, measured


def rows(effort: Effort) -> Iterator[Row]:
    """Measure a dict of 1,000 tensors, to torch and to NumPy."""
    yield from measured(_cases(), effort)


def _cases() -> Iterator[Case]:
    """A dict of a thousand tensors over as many calls, which make a dict as well."""
    leaves = {
        "to_torch(at)": (bridge.to_torch, lambda: at.zeros((2, 3))),
        "to_torch(numpy)": (bridge.to_torch, lambda: np.zeros((2, 3), np.float32)),
        "to_numpy(at)": (bridge.to_numpy, lambda: at.zeros((2, 3))),
    }
    for name, (convert, make) in leaves.items():
        tree = {f"layer{i}": make() for i in range(1_000)}
        yield Case(
            f"`{name}` of a tree of 1,000",
            "1,000 single calls",
            1.3,
            1.1,
            loop("convert(tree)", convert=convert, tree=tree),
            loop(
                "{name: convert(x) for name, x in tree.items()}",
                convert=convert,
                tree=tree,
            ),
        )
