# SPDX-License-Identifier: Apache-2.0
"""What is run: blobs that are fed, operators, and the blobs to look at afterwards.

Read by Python 3.8, which the real Caffe2 needs, as well as by today's; imports NumPy only.
"""

from __future__ import annotations

import importlib
import zlib
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


class Case:
    """Blobs fed under their names, operators run one by one, and what is compared then.

    `steps` are ``(type, inputs, outputs, arguments)``. `results` are the names of the blobs to
    compare; by default each output of each step, once.
    """

    def __init__(
        self,
        name: str,
        feeds: dict[str, Any],
        steps: list[tuple[str, list[str], list[str], dict[str, Any]]],
        results: list[str] | None = None,
    ) -> None:
        self.name = name
        self.feeds = feeds
        self.steps = steps
        outputs = [name for step in steps for name in step[2]]
        self.results = list(dict.fromkeys(outputs)) if results is None else results

    def __repr__(self) -> str:
        return f"{self.name}: {self.steps}"

    def checksum(self) -> int:
        """A number that differs where other blobs are fed."""
        total = 0
        for name, value in self.feeds.items():
            array = np.asarray(value)
            content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
            described = f"{name} {array.shape} {array.dtype}".encode()
            total = zlib.crc32(described + content, total)
        return total


def case(
    name: str, op_type: str, /, *inputs: Any, outputs: int | list[str] = 1, **args: Any
) -> Case:
    """One operator on arrays fed as X0, X1, ...

    `outputs` of them are named Y0, Y1, ...; or else they are the names, for operators in place
    (``outputs=["X0"]``). `args` are those of the operator.
    """
    feeds = {f"X{i}": value for i, value in enumerate(inputs)}
    names = [f"Y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
    return Case(f"{op_type} {name}", feeds, [(op_type, list(feeds), names, args)])


def strings(*values: bytes) -> np.ndarray:
    """A 1-d array of strings, as FeedBlob takes it."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def groups() -> list[str]:
    """The groups of cases: each is a module ``cases_<group>`` with a list ``CASES``."""
    return sorted(path.stem[len("cases_") :] for path in HERE.glob("cases_*.py"))


def cases(group: str) -> list[Case]:
    """The cases of a group. Raises ValueError: two have one name."""
    module = importlib.import_module(f"{__package__}.cases_{group}")
    found: list[Case] = module.CASES
    names = [one.name for one in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"cases of one name in {group}: {twice}")
    return found


def recorded_path(group: str) -> Path:
    """The file with what the real Caffe2 made of a group."""
    return HERE / "recorded" / f"{group}.npz"
