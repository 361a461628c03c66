# SPDX-License-Identifier: Apache-2.0
"""Tensors of other libraries in, each library in a process of its own: some disturb others."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.harness import Effort, Outcome, Row

ROOT = Path(__file__).parents[2]


def _paddle() -> Any:
    import paddle

    return paddle.zeros([2, 3])


def _onnxruntime() -> Any:
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))


def _mlx() -> Any:
    import mlx.core

    array = mlx.core.zeros((2, 3))
    mlx.core.eval(array)
    return array


def _warp() -> Any:
    import warp

    warp.config.quiet = True
    return warp.zeros((2, 3), device="cpu")


# Library: how a tensor is made, and what else imports it.
LIBRARIES: dict[str, tuple[Callable[[], Any], str]] = {
    "paddle": (_paddle, "torch.from_dlpack"),
    "onnxruntime": (_onnxruntime, "torch.from_dlpack"),
    "mlx": (_mlx, "np.asarray"),
    "warp": (_warp, "torch.from_dlpack"),
}


def rows(effort: Effort) -> Iterator[Row]:
    """Measure `from_dlpack` of a tensor of six elements of each library that is installed."""
    for library, (_, peer) in LIBRARIES.items():
        if find_spec(library) is not None:
            outcome = Outcome(**_in_a_process(library, effort))
            yield Row(f"`from_dlpack({library})`", f"`{peer}` of the same", 0.95, 0.9, outcome)


def _in_a_process(library: str, effort: Effort) -> dict[str, Any]:
    numbers = (effort.rounds, effort.samples, effort.seconds)
    done = subprocess.run(
        [sys.executable, "-m", __name__, library, *map(str, numbers)],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def main(library: str, rounds: str, samples: str, seconds: str) -> None:
    """Measure one library; print the outcome as JSON."""
    make, peer = LIBRARIES[library]
    x = make()
    import torch

    import bridge
    from tests.benchmarks.harness import compare, loop

    calls: dict[str, Callable[[Any], Any]] = {
        "torch.from_dlpack": torch.from_dlpack,
        "np.asarray": np.asarray,
    }
    outcome = compare(
        loop("from_dlpack(x)", from_dlpack=bridge.from_dlpack, x=x),
        loop("call(x)", call=calls[peer], x=x),
        Effort(rounds=int(rounds), samples=int(samples), seconds=float(seconds)),
    )
    print(json.dumps(dataclasses.asdict(outcome)))


if __name__ == "__main__":
    main(*sys.argv[1:])
