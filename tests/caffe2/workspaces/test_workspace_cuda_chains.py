# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device: random programs over the blobs of a workspace give what they give on the host.

A program feeds, changes, serialises and fetches three blobs, and runs operators on them, on random
streams. After each step all blobs have the same types, sizes and elements, errors are the same, and
what was fetched before has changed alike. Results of operators are other blobs, which share with
none: an operator may write into the memory that its output has, or give it memory of its own.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import core, workspace

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("fresh_workspace")]
PROGRAMS, A_TEST, STEPS = 60, 15, 12
NAMES, RESULTS = ("a", "b", "c"), ("d", "e", "f")
TYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "int8", "complex64")


class Side(NamedTuple):
    """Where a program runs, and the torch tensors that it has fetched."""

    device: torch.device
    option: Any
    kept: dict[str, torch.Tensor]

    def run(self, op_type: str, inputs: list[str], outputs: list[str], **arguments: Any) -> None:
        workspace.RunOperatorOnce(
            core.CreateOperator(op_type, inputs, outputs, device_option=self.option, **arguments)
        )

    def tensor(self, name: str) -> caffe2.Tensor:
        return workspace.Workspace.current.blobs[name].GetMutable(caffe2.Tensor)


Step = Callable[[Side], object]


def resized(t: caffe2.Tensor, sizes: list[int], value: int) -> None:
    t.Resize(*sizes)
    t.mutable_data("float32")
    at.Tensor(t).fill_(value)


def extended(t: caffe2.Tensor, rows: int, value: int) -> None:
    t.Extend(rows, 50)
    at.Tensor(t)[-rows:].fill_(value)


def step_of(draw: random.Random) -> tuple[str, Step]:
    """Return a step and its text."""
    n, m = draw.choice(NAMES), draw.choice(NAMES)
    i, j, o = draw.choice(NAMES + RESULTS), draw.choice(NAMES + RESULTS), draw.choice(RESULTS)
    sizes = [draw.randrange(4) for _ in range(draw.randrange(4))]
    value, rows, dtype = draw.randrange(1, 5), draw.randrange(1, 4), draw.choice(TYPES)
    array = np.arange(value, value + int(np.prod(sizes))).reshape(sizes).astype(dtype)

    def moved(side: Side) -> torch.Tensor:
        return torch.from_numpy(array.copy()).to(side.device)

    def fetched(name: str) -> torch.Tensor:
        return workspace.FetchTorch(name)

    def op(op_type: str, inputs: list[str], outputs: list[str], **arguments: Any) -> Step:
        return lambda side: side.run(op_type, inputs, outputs, **arguments)

    steps: dict[str, Step] = {
        "feed array": lambda side: workspace.FeedBlob(n, array, side.option),
        "feed torch": lambda side: workspace.FeedBlob(n, moved(side)),
        "feed view": lambda side: workspace.FeedBlob(n, moved(side).flatten()[::2]),
        "feed at": lambda side: workspace.FeedBlob(n, bridge.from_dlpack(moved(side))),
        "feed list": lambda side: workspace.FeedBlob(n, [1, 2, value], side.option),
        "feed other": lambda side: workspace.FeedBlob(n, fetched(m)),
        "feed fetched": lambda side: workspace.FeedBlob(n, workspace.FetchBlob(m), side.option),
        "feed pickled": lambda side: workspace.FeedBlob(
            n, pickle.loads(pickle.dumps(bridge.from_dlpack(fetched(m)))).clone()
        ),
        "serialise": lambda side: workspace.DeserializeBlob(n, workspace.SerializeBlob(m)),
        "keep": lambda side: side.kept.update({n: fetched(n)}),
        "fill kept": lambda side: side.kept[n].fill_(value) if n in side.kept else None,
        "add_": lambda side: fetched(n).add_(1),
        "fetch": lambda side: workspace.FetchBlob(n).tolist(),
        "size": lambda side: workspace.GetBlobSizeBytes(n),
        "shares": lambda side: bridge.shares_memory(fetched(n), fetched(m)),
        "Resize": lambda side: resized(side.tensor(n), sizes, value),
        "Extend": lambda side: extended(side.tensor(n), rows, value),
        "ShrinkTo": lambda side: side.tensor(n).ShrinkTo(1),
        "ShareData": lambda side: side.tensor(n).ShareData(side.tensor(m)),
        "CopyFrom": lambda side: side.tensor(n).CopyFrom(side.tensor(m)),
        "ResetBlob": lambda side: workspace.ResetBlob(n),
        "Alias": op("Alias", [m], [n]),
        "Copy": op("Copy", [i], [o]),
        "Relu": op("Relu", [i], [o]),
        "Add": op("Add", [i, j], [o]),
        "Sum": op("Sum", [i, i], [o]),
        "LT": op("LT", [i, j], [o]),
        "MatMul": op("MatMul", [i, j], [o]),
        "Concat": op("Concat", [i, i], [o, "g"], axis=0),
        "Reshape": op("Reshape", [i], [o, "g"], shape=[-1]),
        "Shape": op("Shape", [i], [o]),
        "Fill": op("ConstantFill", [], [o], shape=sizes, value=float(value)),
        "Fill like": op("ConstantFill", [i], [o], value=float(value)),
        "Cast": op("Cast", [i], [o], to=draw.choice([1, 2, 10, 13])),
        "SumElements": op("SumElements", [i], [o]),
        "Transpose": op("Transpose", [i], [o]),
        "Gather": op("Gather", [i, j], [o]),
        "Slice": op("Slice", [i], [o], starts=[0], ends=[1]),
        "ExpandDims": op("ExpandDims", [i], [o], dims=[0]),
        "Tile": op("Tile", [i], [o], tiles=2, axis=0),
        "Accumulate": op("Accumulate", [i], [o]),
    }
    name = draw.choice(sorted(steps))
    text = f"{name}({n}, {m}; {i}, {j}, {o}; {dtype}{sizes}, {value}, {rows})"
    return text, steps[name]


def attempt(step: Step, side: Side) -> tuple[Any, type | None]:
    workspace.SwitchWorkspace(str(side.device), True)
    try:
        result = step(side)
    except RuntimeError as error:
        return None, type(error)
    return result if isinstance(result, (bool, int, list)) else None, None


def seen(side: Side) -> dict[str, Any]:
    """Return types, sizes and elements of the blobs, and of what was fetched."""
    workspace.SwitchWorkspace(str(side.device), True)
    found: dict[str, Any] = {}
    for name in workspace.Blobs():
        try:
            t = workspace.FetchTorch(name)
        except RuntimeError as error:
            found[name] = type(error)
            continue
        assert t.device == side.device
        found[name] = t.dtype, list(t.shape), repr(t.tolist())
    kept = {name: (list(t.shape), repr(t.tolist())) for name, t in side.kept.items()}
    return {**found, "kept": kept}


def program(seed: int) -> None:
    draw = random.Random(seed)
    last = torch.cuda.device_count() - 1
    device = draw.choice([0, last])
    host = Side(torch.device("cpu"), core.DeviceOption(0), {})
    there = Side(torch.device("cuda", device), core.DeviceOption(1, device), {})
    streams = [None, torch.cuda.Stream(device), torch.cuda.Stream(device)]
    first = np.arange(draw.randrange(1, 5), dtype=draw.choice([np.float32, np.int64]))
    for side in (host, there):
        workspace.SwitchWorkspace(str(side.device), True)
        workspace.ResetWorkspace()
        for name in NAMES:
            workspace.FeedBlob(name, first, side.option)
    done = []
    for _ in range(STEPS):
        text, step = step_of(draw)
        done.append(text)
        stream = draw.choice(streams)
        if stream is not None:
            stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream), torch.cuda.device(draw.choice([0, last])):
            found = attempt(step, there)
        if stream is not None:
            torch.cuda.current_stream(device).wait_stream(stream)
        assert found == attempt(step, host), f"seed {seed}: {done}"
        assert seen(there) == seen(host), f"seed {seed}: {done}"


@pytest.mark.parametrize("first", range(0, PROGRAMS, A_TEST))
def test_random_programs_give_on_cuda_the_results_of_the_host(first: int) -> None:
    for seed in range(first, first + A_TEST):
        program(seed)
