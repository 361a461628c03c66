# SPDX-License-Identifier: Apache-2.0
"""SendTensor and ReceiveTensor: a tensor from one process to another.

Follows caffe2/operators/communicator_op.cc, PyTorch 1.8.1, which has their schemas only.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch

from bridge import c10
from bridge.caffe2.base.data_types import ELEMENT_TYPES, NUMBERS
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.distributed.collectives import CollectiveOperator, as_bytes
from bridge.caffe2.operators.distributed.common_worlds import DEVICES, CommonWorld

# A message before the elements: type number, number of dimensions, sizes.
_MOST_DIMENSIONS = 32
_ANY = -1


class _PointToPoint(CollectiveOperator):
    """Input 1 is the tensor; inputs 2 and 3, if given, the other process and the tag."""

    def number(self, i: int, name: str, default: int) -> int:
        """Return input `i`, an int32 of one element, or else the argument `name`."""
        if self.InputSize() > i:
            (value,) = self.integers(i, (c10.int32, c10.int64))
            return value
        return self.GetSingleArgument(name, default)

    def header_device(self, world: CommonWorld) -> torch.device:
        """Return the device of the message before the elements."""
        return torch.device("cuda" if world.engine == "NCCL" else "cpu")


@register_operator("SendTensor", devices=DEVICES, inputs="2|4", outputs="0", gradient="undefined")
class SendTensor(_PointToPoint):
    """Send input 1 to process `dst`, with the number `tag` (0); its sizes and type too.

    With `raw_buffer` only the elements are sent, to a receiver whose tensor fits.
    """

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Send the sizes, then the elements."""
        x, dtype = self.x(1), self.Input(1).dtype()
        dst, tag = self.number(2, "dst", _ANY), self.number(3, "tag", 0)
        fits = 0 <= dst < world.size and dst != world.rank
        require(fits, f"dst is the rank of another process, 0 to below {world.size}, not {dst}.")
        with world.group("ReceiveTensor", timeout) as group:
            if not self.GetSingleArgument("raw_buffer", False):
                sizes = list(x.shape)
                header = [NUMBERS[dtype.name], len(sizes), *sizes]
                header += [0] * (_MOST_DIMENSIONS + 2 - len(header))
                message = torch.tensor(header, dtype=torch.int64, device=self.header_device(world))
                world.finish(group.send([message], dst, tag), timeout)
            if x.numel():
                world.finish(group.send([as_bytes(x)], dst, tag), timeout)


@register_operator(
    "ReceiveTensor",
    devices=DEVICES,
    inputs="2|4",
    outputs="3",
    inplace="1>0!,2>1,3>2",
    gradient="undefined",
)
class ReceiveTensor(_PointToPoint):
    """Receive a tensor from process `src` (-1: any) with the number `tag` (0).

    The outputs are the tensor, in place of input 1, the sender, and the tag (int32, one element).
    With `raw_buffer` the elements come into the memory of input 1, whose sizes and type fit.
    """

    def run(self, world: CommonWorld, timeout: timedelta | None) -> None:
        """Receive the sizes, then the elements."""
        src, tag = self.number(2, "src", _ANY), self.number(3, "tag", 0)
        require(
            _ANY <= src < world.size and src != world.rank,
            f"src is the rank of another process, 0 to below {world.size}, or -1, not {src}.",
        )
        raw = self.GetSingleArgument("raw_buffer", False)
        into = self.Input(1)
        with world.group("SendTensor", timeout) as group:
            if raw:
                out = self.out(0, into.sizes(), into.dtype())
            else:
                message = torch.zeros(
                    _MOST_DIMENSIONS + 2, dtype=torch.int64, device=self.header_device(world)
                )
                src = self._receive(world, group, message, src, tag, timeout)
                number, ndim, *sizes = message.tolist()
                out = operand(self.Output(0, sizes[:ndim], ELEMENT_TYPES[number]))
            if out.numel():
                src = self._receive(world, group, as_bytes(out), src, tag, timeout)
        for o, value in enumerate((src, tag), 1):
            self.Output(o, [1], c10.int32).mutable_data()[:] = value

    def _receive(
        self,
        world: CommonWorld,
        group: Any,
        into: torch.Tensor,
        src: int,
        tag: int,
        timeout: timedelta | None,
    ) -> int:
        """Receive elements; return the rank of the sender."""
        sent_by_any = src == _ANY
        work = group.recv_anysource([into], tag) if sent_by_any else group.recv([into], src, tag)
        world.finish(work, timeout)
        return int(work._source_rank()) if sent_by_any else src
