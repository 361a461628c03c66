# SPDX-License-Identifier: Apache-2.0
"""Run torch's table of operations on at.Tensors: ``python -m tests.opinfo.run --help``."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from tests.opinfo.routes import ROUTES, outcome, samples

DTYPES = ("float32", "int64", "complex64", "bool")


def table() -> list[Any]:
    """Return torch's table of operations. Raises ImportError: torch's test tools are not there."""
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def run(
    ops: list[Any], dtypes: tuple[str, ...], routes: tuple[str, ...], most: int | None
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (operation, type, route, kind, text) of each call."""
    for op in ops:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        for dtype in dtypes:
            for sample in samples(op, getattr(torch, dtype), most):
                for route in routes:
                    found = outcome(op, sample, route)
                    if found is not None:
                        yield name, dtype, route, *found


def main(arguments: list[str]) -> int:
    """Print what is not the same, and how often; return 1 if results are wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="", help="operations whose names begin so")
    parser.add_argument("--part", default="1/1", help="the k-th of n parts of the table, as 2/8")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES)
    parser.add_argument("--routes", nargs="+", default=tuple(ROUTES), choices=tuple(ROUTES))
    parser.add_argument("--samples", type=int, default=None, help="per operation and type")
    parser.add_argument("--json", help="write every call that is not the same there")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    part, parts = (int(n) for n in given.part.split("/"))
    ops = [op for op in table() if op.name.startswith(given.ops)][part - 1 :: parts]
    counts: Counter[tuple[str, str]] = Counter()
    failures = []
    for found in run(ops, tuple(given.dtypes), tuple(given.routes), given.samples):
        counts[found[2], found[3]] += 1
        if found[3] != "same":
            failures.append(found)
    shown = Counter((*found[:1], *found[2:]) for found in failures)
    for (name, route, kind, text), n in sorted(shown.items(), key=lambda one: one[0][2:]):
        print(f"{kind:8} {route:22} {name:40} {n:3}  {text[:150]}")
    for (route, kind), n in sorted(counts.items()):
        print(f"{route:22} {kind:8} {n:6}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump(failures, file, indent=0)
    return int(any(found[3] == "wrong" for found in failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
