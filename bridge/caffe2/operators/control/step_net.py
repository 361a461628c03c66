# SPDX-License-Identifier: Apache-2.0
"""The step net of a recurrent network, and the workspaces in which its steps run.

Each step has a workspace, whose parent has the blobs that all steps share; the parent of that one
is the workspace of the network. A link makes a blob of a step, the internal one, a part of a
sequence, the external one: time step t is its rows from ``t + offset``, `window` of them. The
memory is shared, so the writes of a step to an internal blob are in the sequence.

Follows caffe2/operators/rnn/recurrent_network_op.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bridge.c10 import ArrayRef, TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.c10.type_meta import as_type
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.blob_table import BlobTable, find_or_create
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.operator import Operator, failure
from bridge.caffe2.execution.operator_core import run_all
from bridge.caffe2.execution.registry import class_for, create_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.control.places import Spot

Place = tuple[int, ArrayRef, TypeMeta]  # the address of a tensor, its sizes and its type


class Link(NamedTuple):
    """The names of both blobs of a link, and which part of the external one it is."""

    internal: str
    external: str
    offset: int
    window: int


class ScratchWorkspaces:
    """The workspaces of the steps, and the one whose blobs they share."""

    def __init__(self) -> None:
        self.shared: BlobTable | None = None
        self.steps: list[BlobTable] = []

    def prepare(self, outer: BlobTable, count: int) -> BlobTable:
        """Create the workspace that is shared, and `count` for the steps; return the former."""
        if self.shared is None:
            self.shared = outer._child()
        while len(self.steps) < count:
            self.steps.append(self.shared._child())
        return self.shared


TypeMeta.Register(ScratchWorkspaces)


def net_of(operator: Operator, name: str, needed: bool = False) -> Any:
    """Return the NetDef of argument `name`, which may be its text, as a new message; else None.

    Raises EnforceNotMet: there is none, and it is `needed`.
    """
    values = operator._definition.arguments.get(name)
    # (An argument may have no value, where a net was extracted for prediction.)
    given = operator.GetSingleArgument(name) if values else ""
    if given == "":
        require(not needed, f"{operator._definition.type} needs the argument {name}, a net.")
        return None
    net = caffe2_pb2().NetDef()
    if isinstance(given, (str, bytes)):
        from google.protobuf import text_format

        text_format.Parse(given, net)
    else:
        net.CopyFrom(given)
    return net


def links_of(operator: Operator, prefix: str = "", windows: bool = True) -> list[Link]:
    """Return the links that the arguments describe whose names begin with `prefix`.

    Raises EnforceNotMet: the lists have different lengths.
    """
    internal = operator.GetRepeatedArgument(f"{prefix}link_internal")
    external = operator.GetRepeatedArgument(f"{prefix}link_external")
    offsets = operator.GetRepeatedArgument(f"{prefix}link_offset")
    given = operator.GetRepeatedArgument(f"{prefix}link_window") if windows else []
    sizes = given or [1] * len(offsets)
    if not len(internal) == len(external) == len(offsets) == len(sizes):
        raise EnforceNotMet(
            f"{prefix}link_internal, _external, _offset and _window have {len(internal)}, "
            f"{len(external)}, {len(offsets)} and {len(sizes)} values; they describe one link each."
        )
    return list(map(Link, internal, external, offsets, sizes))


def room(blob: Blob, sizes: Sequence[int], like: Tensor) -> Tensor:
    """Return the blob's memory as a torch tensor of these sizes, of the type and place of `like`.

    It is the memory that the blob has, if that is of these sizes; otherwise it is new.
    """
    tensor = blob._tensor
    if tensor is not None and tensor.storage_initialized() and tensor.sizes() == sizes:
        current = operand(tensor)
        if current.dtype == like.dtype and current.device == like.device:
            return current
    fresh = torch.empty(tuple(sizes), dtype=like.dtype, device=like.device)
    blob.feed(fresh)
    return fresh


_NUMBER = torch.empty(1, dtype=torch.int32, device="cpu")  # of a step: its type and sizes


def _place(tensor: Any) -> Place:
    """Return where a tensor is, and its sizes and type; a tensor that is resized may stay there."""
    return tensor.raw_data(), tensor.sizes(), tensor.dtype()


def place_of(part: Tensor) -> Place:
    """Return the same of a torch tensor."""
    # (An ArrayRef is compared in a quarter of the time of a torch.Size.)
    return part.data_ptr(), ArrayRef(part.shape), as_type(part.dtype)


def is_part(tensor: Any, place: Place | None) -> bool:
    """Return whether a blob's tensor, or None, is at `place`, of its sizes and type."""
    return tensor is not None and tensor.storage_initialized() and _place(tensor) == place


class _BoundLink:
    """A link between two blobs, and the part of the external one that the internal one is.

    The part is one caffe2.Tensor in all runs: so the tapes of operators stay bound to it.
    """

    __slots__ = ("external", "internal", "link", "part", "place", "spot", "tensor", "whole")

    def __init__(self, link: Link, table: BlobTable) -> None:
        self.link = link
        self.internal = find_or_create(table, link.internal)
        self.external = find_or_create(table, link.external)
        self.whole: tuple[Spot, Any, int] | None = None
        self.spot: Spot | None = None  # of the internal blob, while it is the part
        self.part: Any = None
        self.tensor: Any = None
        self.place: Place | None = None  # of the part

    def apply(self, t: int) -> None:
        """Make the internal blob time step `t` of the external one.

        Raises EnforceNotMet: the external one has no tensor, or is too short.
        """
        external = self.external._tensor
        if self.whole is not None and self.whole[2] == t and self.whole[0].has(external):
            if self.spot is None or not self.spot.has(self.internal._tensor):
                self._bind()
            return
        if external is None or not external.storage_initialized():
            raise EnforceNotMet(f"The link needs a tensor in the blob {self.link.external!r}.")
        place = _place(external)
        if self.whole is None or self.whole[1:] != (place, t):
            self._find_part(external, t)
        self.whole = Spot(external), place, t
        self._bind()

    def _bind(self) -> None:
        """Make the internal blob the part."""
        if not is_part(self.internal._tensor, self.place):
            if is_part(self.tensor, self.place):
                self.internal._set_tensor(self.tensor, False)
            else:
                self._link(self.part)
        bound = self.internal._tensor
        self.spot = None if bound is None else Spot(bound)

    def _link(self, part: Tensor) -> None:
        self.internal.feed(part)
        self.tensor = self.internal._tensor

    def keep(self) -> None:
        """Copy the output of an operator into the internal blob, if it is in memory of its own."""
        tensor = self.internal._tensor
        if (self.spot is not None and self.spot.has(tensor)) or is_part(tensor, self.place):
            return
        assert tensor is not None
        found = operand(tensor)
        if found.numel() != self.part.numel() or found.dtype != self.part.dtype:
            raise EnforceNotMet(
                f"A step wrote {found.dtype} of sizes {list(found.shape)} to the blob "
                f"{self.link.internal!r}, which is a part of {self.link.external!r} of "
                f"{self.part.dtype} of sizes {list(self.part.shape)}."
            )
        if found.data_ptr() != self.part.data_ptr():
            self.part.view(-1).copy_(found.reshape(-1))
        self._link(self.part.view(found.shape))  # as large, maybe of other sizes

    def _find_part(self, external: Any, t: int) -> None:
        whole = operand(external)
        start, window = t + self.link.offset, self.link.window
        if not whole.dim() or not 0 <= start <= whole.shape[0] - window:
            raise EnforceNotMet(
                f"Step {t} needs {window} rows from {start} of the blob {self.link.external!r}, "
                f"which has sizes {list(whole.shape)}."
            )
        self.part = whole.narrow(0, start, window)
        self.place = place_of(self.part)


class StepNet:
    """A step net: its operators, created in the workspace of each step.

    Raises EnforceNotMet: an operator is not registered, or wrong.
    """

    def __init__(self, net: Any, links: Iterable[Link], time_step: str, caller: str) -> None:
        self.name = net.name
        self.links = list(links)
        self.time_step = time_step
        self._caller = caller
        option = net.device_option if net.HasField("device_option") else None
        self._definitions = [Definition(operator, None, option, caller) for operator in net.op]
        for definition in self._definitions:
            class_for(definition, caller)
        self._steps: dict[BlobTable, _Step] = {}
        self.runs = 0  # of operators, and of links, which are operators of Caffe2's executor

    def outputs(self) -> list[str]:
        """Return the names of the blobs that the operators write."""
        return [name for definition in self._definitions for name in definition.outputs]

    def run(self, table: BlobTable, t: int) -> None:
        """Run step `t` in the workspace `table`. Raises EnforceNotMet: an operator failed."""
        step = self._steps.get(table)
        if step is None:
            step = self._steps[table] = _Step(self, table)
        step.run(t)
        self.runs += len(self._definitions) + len(self.links)

    def failure(self, position: int, cause: Exception) -> EnforceNotMet:
        """Return the error of the operator at `position`, to be raised from `cause`."""
        where = f", position {position} of net {self.name!r},"
        return failure(self._definitions[position], cause, self._caller, where)


class _Step:
    """The operators of a step net in a workspace, and its links.

    The operators are in parts: each part ends with one that writes an internal blob.
    """

    def __init__(self, net: StepNet, table: BlobTable) -> None:
        self._net = net
        self._number = find_or_create(table, net.time_step)
        self._links = [_BoundLink(link, table) for link in net.links]
        self._parts: list[tuple[int, list[Operator], list[_BoundLink]]] = []
        part: list[Operator] = []
        for position, definition in enumerate(net._definitions):
            try:
                part.append(create_operator(definition, table, net._caller))
            except Exception as cause:
                raise net.failure(position, cause) from cause
            written = [one for one in self._links if one.link.internal in definition.outputs]
            if written or position == len(net._definitions) - 1:
                self._parts.append((position + 1 - len(part), part, written))
                part = []

    def run(self, t: int) -> None:
        room(self._number, _NUMBER.shape, _NUMBER).fill_(t)
        for link in self._links:
            link.apply(t)
        for start, operators, written in self._parts:
            at = [0]
            try:
                run_all(operators, at)
                for link in written:
                    link.keep()
            except Exception as cause:
                raise self._net.failure(start + at[0], cause) from cause
