# SPDX-License-Identifier: Apache-2.0
"""Reads the recorded sequences and keeps what each step says is true after it."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Step:
    """One operation and everything that could be seen after it.

    `tensors` maps each name that is there to its recorded fields; `deleted` and `released` are the
    external blocks and the freed buffers, in order.
    """

    op: str
    error: str | None
    deleted: list[int]
    released: list[int]
    tensors: dict[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Sequence:
    """One recorded run, from no tensor at all."""

    name: str
    recorded: list[dict[str, Any]]

    def steps(self) -> Iterator[Step]:
        """The steps, each with the full state: the files name only the tensors that changed."""
        tensors: dict[str, dict[str, Any]] = {}
        for step in self.recorded:
            for name, fields in step["tensors"].items():
                if fields is None:
                    del tensors[name]
                else:
                    tensors[name] = fields
            yield Step(
                step["op"],
                step.get("error"),
                step.get("deleted", []),
                step.get("released", []),
                dict(tensors),
            )


def load(name: str) -> list[Sequence]:
    """The sequences of `<name>.json.gz`."""
    with gzip.open(HERE / f"{name}.json.gz", "rt", encoding="ascii") as file:
        return [Sequence(entry["name"], entry["steps"]) for entry in json.load(file)]
