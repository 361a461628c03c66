# SPDX-License-Identifier: Apache-2.0
"""Collective operators: all processes of a common world run them, in the same order.

They read and write the blobs' own memory. One that fails may have written part of it. The operators
of NCCL have one input per CUDA device of one process.
Follows caffe2/contrib/gloo and caffe2/contrib/nccl, PyTorch 1.8.1.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from bridge import c10
from bridge.c10 import int64
from bridge.caffe2.execution.blob_table import find_or_create
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
            self.run()
        except Exception:
            name = self.GetSingleArgument("status_blob", "")
            if name:
                find_or_create(self._workspace, name).feed(np.array([1], np.int32))
            raise

    def run(self) -> None:
        """Do it."""
        raise NotImplementedError

    @property
    def world(self) -> CommonWorld:
        """The common world."""
        return self.Input(0, CommonWorld)

    def group(self, doing: str) -> AbstractContextManager[Any]:
        """Return torch's process group for a ``with`` statement; see `CommonWorld.group`."""
        return self.world.group(doing, timeout_of(self, None))

    def finish(self, work: Any) -> None:
        """Wait for the work that torch has begun."""
        self.world.finish(work, timeout_of(self, None))

    def options(self, name: str) -> Any:
        """Return torch's options of a collective."""
        options = getattr(torch.distributed, name)()
        timeout = timeout_of(self, None)
        if timeout is not None:
            options.timeout = timeout
        return options

    def agree(self, x: torch.Tensor) -> None:
        """Raise EnforceNotMet, in all processes, unless `x` has one size and type in all of them.

        gloo would end a process that receives more or less than it expects.
        """
        if self.world.size == 1:
            return
        n, kind = x.numel(), crc32(str(x.dtype).encode())
        extremes = torch.tensor([n, -n, kind, -kind], dtype=torch.int64, device=x.device)
        options = self.options("AllreduceOptions")
        options.reduceOp = torch.distributed.ReduceOp.MAX
        with self.group(type(self).__name__) as group:
            self.finish(group.allreduce([extremes], options))
        most, least, last, first = extremes.tolist()
        require(
            most == -least and last == -first,
            f"All processes have blobs of one size and type: they have from {-least} to {most} "
            f"elements, and process {self.world.rank} has {n} of {x.dtype}. Nothing was sent.",
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


collective = functools.partial(
    procedure,
    devices=DEVICES,
    base=CollectiveOperator,
    method="run",
    effects=True,
    gradient="undefined",
)


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


@collective("Allreduce", inputs="2-*", outputs="1-*", inplace="1>0*!", keeps_sizes=True)
def allreduce(op: CollectiveOperator) -> None:
    """Set all inputs after the common world to the sum of all of them in all processes."""
    tensors = op.tensors(op.InputSize() - 1)
    op.agree(tensors[0])
    with op.group("Allreduce") as group:
        total = _sum_into_first(tensors)
        if total.numel():
            options = op.options("AllreduceOptions")
            op.finish(group.allreduce([total], options))
        _copy_from_first(tensors)


@collective("Reduce", inputs="2", outputs="1")
def reduce(op: CollectiveOperator) -> None:
    """Set the output in process `root` (0) to the sum of input 1 in all; elsewhere it is unset."""
    root = root_of(op)
    x, dtype = op.x(1), op.Input(1).dtype()
    require(dtype in _ADDED, f"Elements of type {dtype.name} are not added.")
    total = x.clone().view(-1)
    options = op.options("ReduceOptions")
    options.rootRank = root
    op.agree(total)
    with op.group("Reduce") as group:
        if total.numel():
            op.finish(group.reduce([total], options))
    if op.world.rank == root:
        op.put(0, total.view(x.shape))


@collective("Broadcast", inputs="2-*", outputs="1-*", inplace="1>0*!", keeps_sizes=True)
def broadcast(op: CollectiveOperator) -> None:
    """Set all inputs after the common world to the first of them in process `root` (0).

    They have the same sizes and type in all processes.
    """
    root = root_of(op)
    tensors = op.tensors(op.InputSize() - 1, added=False)
    options = op.options("BroadcastOptions")
    options.rootRank = root
    op.agree(tensors[0])
    with op.group("Broadcast") as group:
        if tensors[0].numel():
            op.finish(group.broadcast([as_bytes(tensors[0])], options))
        _copy_from_first(tensors)


@collective("Allgather", inputs="2-*", outputs="1")
def allgather(op: CollectiveOperator) -> None:
    """Set the output, one dimension, to the inputs after the common world, of all processes.

    Those of process 0 come first. They have the same sizes and type in all processes.
    """
    inputs = [op.x(i).reshape(-1) for i in range(1, op.InputSize())]
    first, dtype = inputs[0], op.Input(1).dtype()
    for one in inputs:
        fits = one.dtype == first.dtype and one.shape == first.shape
        require(fits, "All inputs have one type and size.")
    mine = first if len(inputs) == 1 else torch.cat(inputs)
    out = op.out(0, [op.world.size * mine.numel()], dtype)
    op.agree(mine)
    with op.group("Allgather") as group:
        if out.numel():
            work = group._allgather_base(as_bytes(out), as_bytes(mine))
            op.finish(work)


@collective("ReduceScatter", inputs="2-*", outputs="1-*", inplace="1>0*!")
def reduce_scatter(op: CollectiveOperator) -> None:
    """Add up the inputs of all processes; each process receives a part of the sum.

    The last input, int32, has the number of elements that each process receives. They become the
    first elements of all inputs before it; the elements behind them have no meaning.
    """
    n = op.InputSize() - 2
    counts = op.integers(n + 1, (c10.int32,))
    tensors = op.tensors(n)
    require(
        len(counts) == op.world.size and min(counts) >= 0 and sum(counts) == tensors[0].numel(),
        f"The last input has a number of elements for each of {op.world.size} processes, "
        f"{tensors[0].numel()} together, not {counts}.",
    )
    op.agree(tensors[0])
    with op.group("ReduceScatter") as group:
        parts = torch.split(_sum_into_first(tensors), counts)
        works = []
        for root, part in enumerate(parts):
            if part.numel():
                options = op.options("ReduceOptions")
                options.rootRank = root
                works.append(group.reduce([part], options))
        for work in works:
            op.finish(work)
        mine = parts[op.world.rank]
        if op.world.rank:
            tensors[0][: mine.numel()] = mine.clone()  # the two may overlap
        for other in tensors[1:]:
            other[: mine.numel()] = tensors[0][: mine.numel()]


@collective("Barrier", inputs="1", outputs="0-*")
def barrier(op: CollectiveOperator) -> None:
    """Wait until all processes are here."""
    with op.group("Barrier") as group:
        options = op.options("BarrierOptions")
        op.finish(group.barrier(options))


def root_of(op: CollectiveOperator) -> int:
    """Return the argument `root` (0). Raises EnforceNotMet: there is no such process."""
    root: int = op.GetSingleArgument("root", 0)
    require(
        0 <= root < op.world.size,
        f"The argument root is from 0 to below {op.world.size}, not {root}.",
    )
    return root


_DECLARED: dict[str, Any] = {"devices": ("cuda",), "inputs": "1-16", "gradient": "undefined"}


def over_devices(kind: str, xs: list[Tensor], root: int = 0) -> list[Tensor]:
    """Return the outputs of an operator of NCCL, each on the device of an input.

    For NCCLReduce: the sum, on the device of `root`.
    """
    first = xs[0]
    fits = all(x.shape == first.shape and x.dtype == first.dtype for x in xs)
    require(fits, "the inputs have the same sizes and type", *xs)
    require(0 <= root < len(xs), "root is the number of an input", root)
    if kind == "NCCLBroadcast":
        return [xs[root].to(x.device, copy=True) for x in xs]
    if kind == "NCCLAllGather":
        return [torch.stack([x.to(to.device) for x in xs]) for to in xs]
    start = root if kind == "NCCLReduce" else 0
    total = xs[start].clone()
    for x in (*xs[:start], *xs[start + 1 :]):
        total += x.to(total.device)
    if kind == "NCCLReduce":
        return [total]
    if kind == "NCCLAllreduce":
        return [total.to(x.device, copy=True) for x in xs]
    fits = first.dim() > 0 and first.shape[0] == len(xs)
    require(fits, "the first dimension is the number of inputs", first, len(xs))
    return [total[i].to(x.device).clone() for i, x in enumerate(xs)]


@procedure("NCCLAllreduce", outputs="1-16", inplace="0>0*", **_DECLARED)
@procedure("NCCLBroadcast", outputs="1-16", inplace="0>0*!", **_DECLARED)
@procedure("NCCLReduce", outputs="1", inplace="0>0,1>0,2>0,3>0,4>0,5>0", **_DECLARED)
@procedure("NCCLAllGather", outputs="1-16", **_DECLARED)
@procedure("NCCLReduceScatter", outputs="1-16", **_DECLARED)
def run_over_devices(op: TorchOperator) -> None:
    """The sum of the inputs, the input `root`, all inputs, or row i of the sum on device i.

    Caffe2 calls NCCL; here they are copied from device to device, and added on the first.
    """
    root = int(op.GetSingleArgument("root", 0))
    xs = [op.x(i) for i in range(op.InputSize())]
    results = over_devices(op._definition.type, xs, root)
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
