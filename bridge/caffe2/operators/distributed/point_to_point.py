# SPDX-License-Identifier: Apache-2.0
"""SendTensor and ReceiveTensor: a tensor from one process to another.

Follows caffe2/operators/communicator_op.cc, PyTorch 1.8.1, which has their schemas only.
"""

from __future__ import annotations

from typing import Any

import torch

from bridge import c10
from bridge.caffe2.base.data_types import ELEMENT_TYPES, NUMBERS
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.distributed.collectives import CollectiveOperator, as_bytes, collective

# A message before the elements: type number, number of dimensions, sizes.
_MOST_DIMENSIONS = 32
_ANY = -1


def _number(op: CollectiveOperator, i: int, name: str, default: int) -> int:
    """Return input `i`, an int32 of one element, or else the argument `name`."""
    if op.InputSize() > i:
        (value,) = op.integers(i, (c10.int32, c10.int64))
        return value
    return op.GetSingleArgument(name, default)


def _header(op: CollectiveOperator, numbers: list[int]) -> torch.Tensor:
    """Return the message before the elements of input 1, as long as for any tensor."""
    filled = numbers + [0] * (_MOST_DIMENSIONS + 2 - len(numbers))
    device = "cuda" if op.world.engine == "NCCL" else "cpu"
    return torch.tensor(filled, dtype=torch.int64, device=device)


@collective("SendTensor", inputs="2|4", outputs="0")
def send_tensor(op: CollectiveOperator) -> None:
    """Send input 1 to process `dst`, with the number `tag` (0); its sizes and type too.

    With `raw_buffer` only the elements are sent, to a receiver whose tensor fits.
    """
    x, dtype = op.x(1), op.Input(1).dtype()
    dst, tag = _number(op, 2, "dst", _ANY), _number(op, 3, "tag", 0)
    fits = 0 <= dst < op.world.size and dst != op.world.rank
    require(fits, f"dst is the rank of another process, 0 to below {op.world.size}, not {dst}.")
    with op.group("ReceiveTensor") as group:
        if not op.GetSingleArgument("raw_buffer", False):
            message = _header(op, [NUMBERS[dtype.name], x.dim(), *x.shape])
            op.finish(group.send([message], dst, tag))
        if x.numel():
            op.finish(group.send([as_bytes(x)], dst, tag))


@collective("ReceiveTensor", inputs="2|4", outputs="3", inplace="1>0!,2>1,3>2")
def receive_tensor(op: CollectiveOperator) -> None:
    """Receive a tensor from process `src` (-1: any) with the number `tag` (0).

    The outputs are the tensor, in place of input 1, the sender, and the tag (int32, one element).
    With `raw_buffer` the elements come into the memory of input 1, whose sizes and type fit.
    """
    src, tag = _number(op, 2, "src", _ANY), _number(op, 3, "tag", 0)
    size, rank = op.world.size, op.world.rank
    require(
        _ANY <= src < size and src != rank,
        f"src is the rank of another process, 0 to below {size}, or -1, not {src}.",
    )
    into = op.Input(1)
    with op.group("SendTensor") as group:
        if op.GetSingleArgument("raw_buffer", False):
            out = op.out(0, into.sizes(), into.dtype())
        else:
            message = _header(op, [])
            src = _receive(op, group, message, src, tag)
            number, ndim, *sizes = message.tolist()
            out = operand(op.Output(0, sizes[:ndim], ELEMENT_TYPES[number]))
        if out.numel():
            src = _receive(op, group, as_bytes(out), src, tag)
    for o, value in enumerate((src, tag), 1):
        op.Output(o, [1], c10.int32).mutable_data()[:] = value


def _receive(op: CollectiveOperator, group: Any, into: torch.Tensor, src: int, tag: int) -> int:
    """Receive elements; return the rank of the sender."""
    sent_by_any = src == _ANY
    work = group.recv_anysource([into], tag) if sent_by_any else group.recv([into], src, tag)
    op.finish(work)
    return int(work._source_rank()) if sent_by_any else src
