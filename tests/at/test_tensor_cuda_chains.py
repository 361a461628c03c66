# SPDX-License-Identifier: Apache-2.0
"""Random chains of operations on both wrappers, on a CUDA device as in host memory.

Each step is done to a tensor on the device and to one of the same values in host memory; after it
both have the same type, sizes and elements, or both refuse the step. Steps on the device run on
changing streams of torch, with exchange in between.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("fresh_workspace")]
CHAINS, LENGTH, A_TEST = 240, 12, 20
TYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16")
MOST = 200  # elements

Step = Callable[[Any], Any]


class Described:
    """A producer with the CUDA Array Interface only."""

    def __init__(self, x: Any) -> None:
        self.x = x
        self.__cuda_array_interface__ = x.__cuda_array_interface__


def described(x: at.Tensor) -> at.Tensor:
    return x.detach() if str(x.device()) == "cpu" else bridge.from_dlpack(Described(x))


def devices(x: Any) -> list[str]:
    """Return where to move it: on the host only in name, so that both chains stay alike."""
    if str(x.device()) == "cpu":
        return ["cpu"]
    return [f"cuda:{index}" for index in range(torch.cuda.device_count())]


def as_caffe2(x: at.Tensor, do: Callable[[caffe2.Tensor], object]) -> at.Tensor:
    tensor = caffe2.Tensor(x)
    do(tensor)
    return at.Tensor(tensor)


def cloned(x: at.Tensor, do: Callable[[caffe2.Tensor], object]) -> at.Tensor:
    """Do it to a contiguous copy, as Caffe2's methods need."""
    return as_caffe2(x.clone().contiguous(), do)


def extended(t: caffe2.Tensor, n: int) -> None:
    before = t.numel()
    t.Extend(n, 50)
    at.Tensor(t).flatten()[before:].fill_(1)


def fed(x: at.Tensor, name: str) -> at.Tensor:
    workspace.FeedBlob(name, x)
    return bridge.from_dlpack(workspace.FetchTorch(name))


def filled_new(t: caffe2.Tensor, sizes: list[int]) -> None:
    t.Resize(*sizes)
    t.mutable_data(None)
    at.Tensor(t).fill_(1)


def step_of(draw: random.Random, x: at.Tensor) -> tuple[str, Step]:
    """Return the name of a step and what it does to a tensor of the sizes of `x`."""
    dims, numel = x.dim(), x.numel()
    d, e = (draw.randrange(-dims, dims), draw.randrange(-dims, dims)) if dims else (0, 0)
    size = x.size(d) if dims else 1
    first = draw.randrange(size + 1) if size else 0
    length = draw.randrange(size - first + 1)
    order = list(range(dims))
    draw.shuffle(order)
    dtype = draw.choice(TYPES)
    value = draw.choice([0, 1, 2, 3])
    number = draw.randrange(1000)
    sizes = [draw.randrange(1, 4) for _ in range(draw.randrange(1, 4))]
    rows = draw.randrange(1, 4)
    where = draw.random()
    steps: dict[str, Step] = {
        f"transpose({d}, {e})": lambda t: t.transpose(d, e),
        f"permute({order})": lambda t: t.permute(*order),
        f"narrow({d}, {first}, {length})": lambda t: t.narrow(d, first, length),
        f"select({d}, {first})": lambda t: t.select(d, first),
        f"unsqueeze({d})": lambda t: t.unsqueeze(d),
        "squeeze()": lambda t: t.squeeze(),
        "[::-1]": lambda t: t[::-1],
        "[..., ::2]": lambda t: t[..., ::2],
        "view(-1)": lambda t: t.view(-1),
        "reshape(-1)": lambda t: t.reshape(-1),
        f"expand({rows}, …)": lambda t: t.unsqueeze(0).expand(rows, *t.sizes()),
        "clone()": lambda t: t.clone(),
        "contiguous()": lambda t: t.contiguous(),
        "detach()": lambda t: t.detach(),
        f"to({dtype})": lambda t: t.to(dtype),
        f"view({dtype})": lambda t: t.view(dtype),
        f"clone().fill_({value})": lambda t: t.clone().fill_(value),
        "clone().zero_()": lambda t: t.clone().zero_(),
        "written row": lambda t: written(t.clone(), value),
        "copy_": lambda t: t.clone().copy_(t[::-1] if t.dim() else t),
        "copy_ of one": lambda t: t.clone().copy_(at.full((), value, device=t.device())),
        f"resize_({sizes})": lambda t: t.clone().resize_(*sizes).fill_(1),
        "+ 1": lambda t: t + 1,
        "== 1": lambda t: t == 1,
        "caffe2": lambda t: at.Tensor(caffe2.Tensor(t)),
        "Clone": lambda t: as_caffe2(t, lambda c: c.sizes()).clone(),
        f"Resize({sizes})": lambda t: cloned(t, lambda c: filled_new(c, sizes)),
        f"Extend({rows})": lambda t: cloned(t, lambda c: extended(c, rows)),
        "ShrinkTo(1)": lambda t: cloned(t, lambda c: c.ShrinkTo(1)),
        f"Reshape([{numel}])": lambda t: cloned(t, lambda c: c.Reshape([numel])),
        "CopyFrom": lambda t: as_caffe2(
            at.zeros(1, device=t.device()), lambda c: c.CopyFrom(caffe2.Tensor(t))
        ),
        "ShareData": lambda t: shared(t),
        "torch and back": lambda t: bridge.from_dlpack(t.to_torch()),
        "a copy of torch's": lambda t: bridge.from_dlpack(t.to_torch(copy=True)),
        "torch computes": lambda t: bridge.from_dlpack(t.to_torch().clone().flip(0)),
        "torch.from_dlpack": lambda t: bridge.from_dlpack(torch.from_dlpack(t)),
        "capsule": lambda t: bridge.from_dlpack(t.__dlpack__(stream=None)),
        "interface": described,
        "asarray": lambda t: bridge.asarray(t, copy=True),
        "to a device": lambda t: t.to(devices(t)[int(where * len(devices(t)))]).contiguous(),
        "the host and back": lambda t: t.cpu().to(t.device()).contiguous(),
        "NumPy and back": lambda t: bridge.from_dlpack(
            bridge.from_dlpack(t, device="cpu", copy=True).numpy(), device=str(t.device())
        ).clone(),
        f"FeedBlob {number}": lambda t: fed(t, f"{t.device()} {number % 3}"),
    }
    name = draw.choice(sorted(steps))
    return name, steps[name]


def written(t: at.Tensor, value: int) -> at.Tensor:
    t[0] = value
    t[-1:] = t[:1]
    return t


def shared(t: at.Tensor) -> at.Tensor:
    mine = caffe2.Tensor(t.clone().contiguous())
    other = caffe2.Tensor(list(mine.sizes()), str(mine.GetDevice()))
    other.ShareData(mine)
    return at.Tensor(other)


def seen(t: at.Tensor) -> Any:
    values = t.to("float64").cpu().tolist()
    return str(t.dtype()), list(t.sizes()), values


def attempt(step: Step, t: at.Tensor) -> tuple[at.Tensor | None, type | None]:
    try:
        return step(t), None
    except (RuntimeError, TypeError, ValueError, IndexError, BufferError) as error:
        return None, type(error)


def chain(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [draw.randrange(1, 5) for _ in range(draw.randrange(0, 4))]
    kind = np.dtype(draw.choice(["float32", "int64", "uint8"]))
    host = bridge.from_dlpack(np.arange(1, 1 + np.prod(sizes, dtype=int)).astype(kind)).view(*sizes)
    there = host.cuda()
    sides = [torch.cuda.Stream() for _ in range(2)]
    done = []
    for _ in range(LENGTH):
        name, step = step_of(draw, host)
        done.append(name)
        side = draw.choice([None, *sides])
        if side is not None:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            moved, refused = attempt(step, there)
        if side is not None:
            torch.cuda.current_stream().wait_stream(side)
        expected, refusal = attempt(step, host)
        where = f"seed {seed}: {done} of {kind}{sizes}"
        assert (moved is None) == (expected is None), f"{where}: {refused} {refusal}"
        if expected is None or moved is None or expected.numel() > MOST:
            continue
        host, there = expected, moved
        assert seen(there) == seen(host), where


@pytest.mark.parametrize("first", range(0, CHAINS, A_TEST))
def test_random_chains_of_operations_give_the_same_on_cuda_as_on_the_host(first: int) -> None:
    for seed in range(first, first + A_TEST):
        chain(seed)
