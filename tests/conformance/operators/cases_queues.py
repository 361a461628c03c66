# SPDX-License-Identifier: Apache-2.0
"""Queues of blobs, filled and emptied by one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, strings

x = np.arange(6, dtype=np.float32).reshape(3, 2)
FEEDS: dict[str, Any] = {"a": x, "b": strings(b"p", b"q"), "c": x[:1] + 10, "d": strings(b"r")}


def create(**args: Any) -> tuple:
    return ("CreateBlobsQueue", [], ["Q"], {"capacity": 2, "num_blobs": 2, **args})


def put(*names: str, kind: str = "EnqueueBlobs", more: Any = ()) -> tuple:
    return (kind, ["Q", *names], [*names, *more], {})


def safe_put(*names: str, status: str) -> tuple:
    return put(*names, kind="SafeEnqueueBlobs", more=[status])


def take(*names: str, kind: str = "DequeueBlobs", **args: Any) -> tuple:
    return (kind, ["Q"], list(names), args)


def safe_take(*names: str, **args: Any) -> tuple:
    return take(*names, kind="SafeDequeueBlobs", **args)


CLOSE = ("CloseBlobsQueue", ["Q"], [], {})


def queue(name: str, *steps: tuple, results: Any = ()) -> Case:
    return Case(f"queue {name}", FEEDS, list(steps), list(results))


# fmt: off
CASES = [
    queue("in and out", create(), put("a", "b"), put("c", "d"), take("A", "B"), take("C", "D"),
          results=["A", "B", "C", "D"]),
    queue("around", create(capacity=1), put("a", "b"), take("A", "B"), put("c", "d"),
          take("C", "D"), results=["A", "B", "C", "D"]),
    queue("a place is a blob", create(), put("a", "b"), results=["Q_0_0", "Q_0_1"]),
    queue("what was in the place", create(capacity=1), put("a", "b"), take("c", "d"), put("c", "d"),
          results=["c", "Q_0_0"]),
    queue("full and closed", create(capacity=1), put("a", "b"), CLOSE, put("c", "d")),
    queue("room and closed", create(), CLOSE, put("a", "b"), take("A", "B"), results=["A", "B"]),
    queue("empty and closed", create(), CLOSE, take("A", "B")),
    queue("too long", create(), take("A", "B", timeout_secs=0.01)),
    queue("one blob", create(), put("a")),
    queue("names", create(field_names=["one"])),
    queue("unique", create(enforce_unique_name=True), create(enforce_unique_name=True)),
    queue("safely", create(capacity=1), safe_put("a", "b", status="S"), CLOSE,
          safe_put("c", "d", status="T"), safe_take("A", "B", "U"), safe_take("C", "D", "V"),
          results=["S", "T", "A", "B", "U", "V", "c"]),
    queue("several", create(), put("a", "b"), put("c", "d"), CLOSE,
          safe_take("A", "B", "S", num_records=3), safe_take("C", "D", "T", num_records=3),
          results=["A", "B", "S", "T"]),
    queue("no records", create(), safe_take("A", "B", "S", num_records=0)),
    queue("outputs", create(), put("a", "b"), safe_take("A", "S")),
    queue("sampled", create(), put("a", "b"), CLOSE,
          ("WeightedSampleDequeueBlobs", ["Q"], ["A", "B", "S"], {}),
          ("WeightedSampleDequeueBlobs", ["Q"], ["C", "D", "T"], {}), results=["A", "B", "S", "T"]),
    queue("weights", create(),
          ("WeightedSampleDequeueBlobs", ["Q"], ["A", "B", "S"], {"weights": [0.0]})),
]
# fmt: on
