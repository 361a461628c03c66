# SPDX-License-Identifier: Apache-2.0
"""Collective operators: all processes of a common world run them, in the same order.

They read and write the blobs' own memory. One that fails may have written part of it. The operators
of NCCL have one input per CUDA device of one process.
Follows caffe2/contrib/gloo and caffe2/contrib/nccl, PyTorch 1.8.1.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from bridge import c10
from bridge.c10 import int64
from bridge.caffe2.execution.blob_table import find_or_create
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.distributed.common_worlds import DEVICES, CommonWorld
from bridge.caffe2.operators.distributed.stores import timeout_of

# The types that gloo and NCCL can add.
_ADDED = (
    c10.float32,
    c10.float64,
    c10.float16,
    c10.bfloat16,
    c10.int8,
    c10.uint8,
    c10.int32,
    c10.int64,
)


class CollectiveOperator(TorchOperator):
    """An operator on the common world in input 0.

    Argument `timeout_ms`: how long to wait for the other processes, if not as long as the common
    world does. Argument `status_blob`: the name of a blob that becomes [1], int32, on failure.
    """

    _has_effects = True

    def RunOnDevice(self) -> None:
        try:
            self.run(self.Input(0, CommonWorld), timeout_of(self, None))
        except Exception:
            self._report()
            raise

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Do it."""
        raise NotImplementedError

    def _report(self) -> None:
        name = self.GetSingleArgument("status_blob", "")
        if name:
            find_or_create(self._workspace, name).feed(np.array([1], np.int32))

    def options(self, name: str, timeout: timedelta | None) -> Any:
        """Return torch's options of a collective."""
        options = getattr(torch.distributed, name)()
        if timeout is not None:
            options.timeout = timeout
        return options

    def agree(self, world: CommonWorld, x: torch.Tensor, timeout: timedelta | None) -> None:
        """Raise EnforceNotMet, in all processes, unless `x` has one size and type in all of them.

        gloo would end a process that receives more or less than it expects.
        """
        if world.size == 1:
            return
        n, kind = x.numel(), crc32(str(x.dtype).encode())
        extremes = torch.tensor([n, -n, kind, -kind], dtype=torch.int64, device=x.device)
        options = self.options("AllreduceOptions", timeout)
        options.reduceOp = torch.distributed.ReduceOp.MAX
        with world.group(type(self).__name__, timeout) as group:
            world.finish(group.allreduce([extremes], options), timeout)
        most, least, last, first = extremes.tolist()
        require(
            most == -least and last == -first,
            f"All processes have blobs of one size and type: they have from {-least} to {most} "
            f"elements, and process {world.rank} has {n} of {x.dtype}. Nothing was sent.",
        )

    def tensors(self, n: int, added: bool = True) -> list[torch.Tensor]:
        """Return the inputs 1 to `n`, of one size and type, as outputs 0 to n - 1, flat.

        Memory that is read-only is replaced by a copy of it.
        Raises EnforceNotMet: they differ, their elements cannot be added, or there are not as many
        outputs.
        """
        require(n > 0 and self.OutputSize() >= n, f"{n} tensors need {n} outputs, the same blobs.")
        inputs = [self.x(i) for i in range(1, n + 1)]
        first = inputs[0]
        for i, x in enumerate(inputs, 1):
            dtype = self.Input(i).dtype()
            require(
                x.dtype == first.dtype and x.shape == first.shape,
                f"All inputs have one type and size; input {i} has {x.dtype} {list(x.shape)}, "
                f"input 1 {first.dtype} {list(first.shape)}.",
            )
            if added:
                require(dtype in _ADDED, f"Elements of type {dtype.name} are not added.")
        outputs = []
        for i, x in enumerate(inputs):
            out = self.out(i, self.Input(i + 1).sizes(), self.Input(i + 1).dtype())
            if out.data_ptr() != x.data_ptr():
                out.copy_(x)
            outputs.append(out.view(-1))
        return outputs


def _sum_into_first(tensors: list[torch.Tensor]) -> torch.Tensor:
    first, *others = tensors
    for other in others:
        first.add_(other)
    return first


def _copy_from_first(tensors: list[torch.Tensor]) -> None:
    first, *others = tensors
    for other in others:
        other.copy_(first)


def as_bytes(x: torch.Tensor) -> torch.Tensor:
    """Return a flat tensor over the same memory that any backend can move."""
    return x.view(-1).view(torch.uint8)


@register_operator(
    "Allreduce", devices=DEVICES, inputs="2-*", outputs="1-*", inplace="1>0*!", gradient="undefined"
)
class Allreduce(CollectiveOperator):
    """Set all inputs after the common world to the sum of all of them in all processes."""

    _keeps_sizes = True

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Add up here, then everywhere, then copy."""
        tensors = self.tensors(self.InputSize() - 1)
        self.agree(world, tensors[0], timeout)
        with world.group("Allreduce", timeout) as group:
            total = _sum_into_first(tensors)
            if total.numel():
                options = self.options("AllreduceOptions", timeout)
                world.finish(group.allreduce([total], options), timeout)
            _copy_from_first(tensors)


@register_operator("Reduce", devices=DEVICES, inputs="2", outputs="1", gradient="undefined")
class Reduce(CollectiveOperator):
    """Set the output in process `root` (0) to the sum of input 1 in all; elsewhere it is unset."""

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Add up in a copy: the input stays as it is, also where torch needs it as work space."""
        root = root_of(self, world)
        x, dtype = self.x(1), self.Input(1).dtype()
        require(dtype in _ADDED, f"Elements of type {dtype.name} are not added.")
        total = x.clone().view(-1)
        options = self.options("ReduceOptions", timeout)
        options.rootRank = root
        self.agree(world, total, timeout)
        with world.group("Reduce", timeout) as group:
            if total.numel():
                world.finish(group.reduce([total], options), timeout)
        if world.rank == root:
            self.put(0, total.view(x.shape))


@register_operator(
    "Broadcast", devices=DEVICES, inputs="2-*", outputs="1-*", inplace="1>0*!", gradient="undefined"
)
class Broadcast(CollectiveOperator):
    """Set all inputs after the common world to the first of them in process `root` (0).

    They have the same sizes and type in all processes.
    """

    _keeps_sizes = True

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Send, then copy."""
        root = root_of(self, world)
        tensors = self.tensors(self.InputSize() - 1, added=False)
        options = self.options("BroadcastOptions", timeout)
        options.rootRank = root
        self.agree(world, tensors[0], timeout)
        with world.group("Broadcast", timeout) as group:
            if tensors[0].numel():
                world.finish(group.broadcast([as_bytes(tensors[0])], options), timeout)
            _copy_from_first(tensors)


@register_operator("Allgather", devices=DEVICES, inputs="2-*", outputs="1", gradient="undefined")
class Allgather(CollectiveOperator):
    """Set the output, one dimension, to the inputs after the common world, of all processes.

    Those of process 0 come first. They have the same sizes and type in all processes.
    """

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Gather into the output's own memory."""
        inputs = [self.x(i).reshape(-1) for i in range(1, self.InputSize())]
        first, dtype = inputs[0], self.Input(1).dtype()
        for one in inputs:
            fits = one.dtype == first.dtype and one.shape == first.shape
            require(fits, "All inputs have one type and size.")
        mine = first if len(inputs) == 1 else torch.cat(inputs)
        out = self.out(0, [world.size * mine.numel()], dtype)
        self.agree(world, mine, timeout)
        with world.group("Allgather", timeout) as group:
            if out.numel():
                work = group._allgather_base(as_bytes(out), as_bytes(mine))
                world.finish(work, timeout)


@register_operator(
    "ReduceScatter",
    devices=DEVICES,
    inputs="2-*",
    outputs="1-*",
    inplace="1>0*!",
    gradient="undefined",
)
class ReduceScatter(CollectiveOperator):
    """Add up the inputs of all processes; each process receives a part of the sum.

    The last input, int32, has the number of elements that each process receives. They become the
    first elements of all inputs before it; the elements behind them have no meaning.
    """

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Reduce each part to the process that it is for, on the blob's own memory."""
        n = self.InputSize() - 2
        counts = self.integers(n + 1, (c10.int32,))
        tensors = self.tensors(n)
        require(
            len(counts) == world.size and min(counts) >= 0 and sum(counts) == tensors[0].numel(),
            f"The last input has a number of elements for each of {world.size} processes, "
            f"{tensors[0].numel()} together, not {counts}.",
        )
        self.agree(world, tensors[0], timeout)
        with world.group("ReduceScatter", timeout) as group:
            parts = torch.split(_sum_into_first(tensors), counts)
            works = []
            for root, part in enumerate(parts):
                if part.numel():
                    options = self.options("ReduceOptions", timeout)
                    options.rootRank = root
                    works.append(group.reduce([part], options))
            for work in works:
                world.finish(work, timeout)
            mine = parts[world.rank]
            if world.rank:
                tensors[0][: mine.numel()] = mine.clone()  # the two may overlap
            for other in tensors[1:]:
                other[: mine.numel()] = tensors[0][: mine.numel()]


@register_operator("Barrier", devices=DEVICES, inputs="1", outputs="0-*", gradient="undefined")
class Barrier(CollectiveOperator):
    """Wait until all processes are here."""

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Wait."""
        with world.group("Barrier", timeout) as group:
            options = self.options("BarrierOptions", timeout)
            world.finish(group.barrier(options), timeout)


def root_of(op: TorchOperator, world: CommonWorld) -> int:
    """Return the argument `root` (0). Raises EnforceNotMet: there is no such process."""
    root: int = op.GetSingleArgument("root", 0)
    require(
        0 <= root < world.size, f"The argument root is from 0 to below {world.size}, not {root}."
    )
    return root


_DECLARED: dict[str, Any] = {"devices": ("cuda",), "inputs": "1-16", "gradient": "undefined"}


def total(xs: list[Tensor], root: int = 0) -> Tensor:
    """Return the sum of tensors of one size, on the device of `root`."""
    _require_same(xs, root)
    found = xs[root].clone()
    for i, x in enumerate(xs):
        if i != root:
            found += x.to(found.device)
    return found


def _require_same(xs: list[Tensor], root: int = 0) -> None:
    fits = all(x.shape == xs[0].shape and x.dtype == xs[0].dtype for x in xs)
    require(fits, "the inputs have the same sizes and type", *xs)
    require(0 <= root < len(xs), "root is the number of an input", root)


def summed(xs: list[Tensor], root: int) -> list[Tensor]:
    """Return the sum, once on the device of each."""
    found = total(xs)
    return [found.to(x.device, copy=True) for x in xs]


def reduced(xs: list[Tensor], root: int) -> list[Tensor]:
    """Return the sum on the device of `root`."""
    return [total(xs, root)]


def sent(xs: list[Tensor], root: int) -> list[Tensor]:
    """Return the tensor `root`, once on the device of each."""
    _require_same(xs, root)
    return [xs[root].to(x.device, copy=True) for x in xs]


def gathered(xs: list[Tensor], root: int) -> list[Tensor]:
    """Return all tensors stacked, once on the device of each."""
    _require_same(xs)
    return [torch.stack([x.to(to.device) for x in xs]) for to in xs]


def scattered(xs: list[Tensor], root: int) -> list[Tensor]:
    """Return the sum in as many parts as there are tensors, each on the device of its own."""
    fits = xs[0].dim() > 0 and xs[0].shape[0] == len(xs)
    require(fits, "the first dimension is the number of inputs", xs[0], len(xs))
    found = total(xs)
    return [found[i].to(x.device).clone() for i, x in enumerate(xs)]


_OVER_DEVICES = {
    "NCCLAllreduce": summed,
    "NCCLBroadcast": sent,
    "NCCLReduce": reduced,
    "NCCLAllGather": gathered,
    "NCCLReduceScatter": scattered,
}


@procedure("NCCLAllreduce", outputs="1-16", inplace="0>0*", **_DECLARED)
@procedure("NCCLBroadcast", outputs="1-16", inplace="0>0*!", **_DECLARED)
@procedure("NCCLReduce", outputs="1", inplace="0>0,1>0,2>0,3>0,4>0,5>0", **_DECLARED)
@procedure("NCCLAllGather", outputs="1-16", **_DECLARED)
@procedure("NCCLReduceScatter", outputs="1-16", **_DECLARED)
def over_devices(op: TorchOperator) -> None:
    """The sum of the inputs, the input `root`, all inputs, or row i of the sum on device i.

    Caffe2 calls NCCL; here they are copied from device to device, and added on the first.
    """
    root = int(op.GetSingleArgument("root", 0))
    xs = [op.x(i) for i in range(op.InputSize())]
    results = _OVER_DEVICES[op._definition.type](xs, root)
    fits = len(results) == op.OutputSize()
    require(fits, f"there are {len(results)} outputs", op.OutputSize())
    for o, result in enumerate(results):
        op.put(o, result)


@procedure("GetGPUMemoryUsage", devices=("cuda",), inputs="0", outputs="1")
def get_gpu_memory_usage(op: TorchOperator) -> None:
    """Bytes that torch has allocated on each device: now, and at most so far; (2, devices)."""
    devices = range(torch.cuda.device_count())
    now = [torch.cuda.memory_allocated(i) for i in devices]
    most = [torch.cuda.max_memory_allocated(i) for i in devices]
    out = op.out(0, [2, len(devices)], int64)
    out.copy_(torch.tensor([now, most], dtype=torch.int64, device="cpu"))
