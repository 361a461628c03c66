# SPDX-License-Identifier: Apache-2.0
"""Scopes: nets that run in workspaces of their own, which a gradient finds again.

A stack of workspaces is a blob. `Do` pushes one for each run, in which some names stand for blobs
of the outer workspace. Its gradient pops them, the last one first, and has their blobs.
Follows create_scope_op.h and do_op.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.blob_table import BlobTable, find_blob
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.gradients.control_flow import do_gradient
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.control.step_net import net_of


class Scope:
    """A workspace without a parent, in which some names stand for blobs of another one."""

    def __init__(self, outer: BlobTable) -> None:
        self.table = outer._child()
        self.table._parent = None
        self._outer_names: dict[str, str] = {}
        self._nets: dict[str, tuple[bytes, RunnableNet]] = {}

    def bind(self, outer: BlobTable, names: dict[str, str], keep: bool) -> None:
        """Let names of this workspace stand for blobs of `outer`.

        keep: a name that this workspace already has stays as it is. Raises EnforceNotMet: `outer`
        has no such blob, or the name stands for another one.
        """
        for inner, name in names.items():
            blob = find_blob(outer, name)
            if blob is None:
                raise EnforceNotMet(f"There is no blob {name!r}, for which {inner!r} stands.")
            known = self._outer_names.get(inner)
            if known is None:
                if inner in self.table._blobs:
                    require(keep, f"The scope has a blob {inner!r}, which is to be {name!r}.")
                    continue
                self._outer_names[inner] = name
            elif known != name:
                raise EnforceNotMet(f"{inner!r} stands for {known!r} already, not for {name!r}.")
            if self.table._blobs.get(inner) is not blob:
                self._nets.clear()  # their operators have the blobs of before
                self.table._blobs[inner] = blob

    def unbind_copies(self, names: dict[str, str]) -> None:
        """Drop the blobs of this workspace that were copied from those of the outer one."""
        for inner in names:
            if inner not in self._outer_names and self.table._blobs.pop(inner, None) is not None:
                self._nets.clear()

    def copy_bound(self, names: dict[str, str]) -> None:
        """Replace stand-ins for blobs of the outer workspace by copies of their tensors."""
        for inner in names:
            if self._outer_names.pop(inner, None) is not None:
                tensor = self.table._blobs[inner]._tensor
                copy = self.table._blobs[inner] = Blob()
                if tensor is not None and tensor.dtype():
                    copy.feed(tensor.Clone())
        self._nets.clear()

    def run(self, net: Any, data: bytes, caller: str) -> None:
        """Run a NetDef, whose bytes are `data`; it is created once for these bytes."""
        found = self._nets.get(net.name)
        if found is None or found[0] != data:
            found = self._nets[net.name] = (data, RunnableNet(net, self.table, caller))
        found[1].run()


class WorkspaceStack:
    """Scopes, of which the first `depth` are in use; the others are there to be used again."""

    def __init__(self) -> None:
        self._scopes: list[Scope] = []
        self.depth = 0

    def push(self, outer: BlobTable, names: dict[str, str]) -> Scope:
        """Return the next scope, with `names` bound to blobs of `outer`."""
        if self.depth == len(self._scopes):
            self._scopes.append(Scope(outer))
        scope = self._scopes[self.depth]
        scope.unbind_copies(names)
        scope.bind(outer, names, False)
        self.depth += 1
        return scope

    def last(self, outer: BlobTable, names: dict[str, str]) -> Scope:
        """Return the scope in use that was pushed last, with `names` bound too."""
        scope = self._scopes[self.depth - 1]
        scope.bind(outer, names, False)
        return scope

    def pop(self, outer: BlobTable, names: dict[str, str]) -> Scope:
        """Return the scope that was pushed last, which is not in use any more.

        Raises EnforceNotMet: none is in use.
        """
        require(self.depth > 0, "There is no scope of a forward run left.")
        scope = self._scopes[self.depth - 1]
        scope.bind(outer, names, True)
        self.depth -= 1
        return scope

    def clear(self) -> None:
        """Let no scope be in use."""
        self.depth = 0


TypeMeta.Register(WorkspaceStack)


@procedure("CreateScope", ("cpu", "cuda"), inputs="0", outputs="1", gradient="undefined")
def create_scope(op: TorchOperator) -> None:
    """Set the output to an empty stack of workspaces."""
    op.OutputBlob(0).GetMutable(WorkspaceStack).clear()


@procedure("HasScope", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
def has_scope(op: TorchOperator) -> None:
    """Return whether the stack has a workspace in use: one bool, (1,)."""
    depth = op.Input(0, WorkspaceStack).depth
    op.Output(0, [1], c10.bool).mutable_data()[:] = depth > 0


@register_operator(
    "Do", ("cpu", "cuda"), inputs="1-*", outputs="1-*", inplace="any", gradient=do_gradient
)
class Do(TorchOperator):
    """Run `net` in a workspace of its own, pushed onto the stack in the last input and output.

    The names `inner_blobs` stand in it for other inputs and outputs, those numbered in
    `outer_blobs_idx`. With `reuse_workspace` the last workspace in use is used again; with
    `copy_external_blobs` it keeps copies of the outer blobs. A gradient operator pops a workspace.

    Raises EnforceNotMet: the names contradict each other, a blob is missing, the net failed.
    """

    _has_effects = True
    writes_last = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        definition = self._definition
        self._is_gradient = definition.message().is_gradient_op
        self._net = net_of(self, "net", needed=True)
        if not self._net.HasField("name"):
            self._net.name = "do_op_net"
        self._data = self._net.SerializeToString()
        inputs, outputs = definition.inputs, definition.outputs
        require(inputs[-1] == outputs[-1], "The last input is not the last output, the scope.")
        for names in (inputs[:-1], outputs[:-1]):
            require(len({*names}) == len(names), f"A blob occurs twice among {list(names)}.")
        outer = (*inputs[:-1], *outputs[:-1])
        inner = self.GetRepeatedArgument("inner_blobs")
        places = self.GetRepeatedArgument("outer_blobs_idx")
        require(
            len(inner) == len(places) == len({*inner})
            and all(0 <= place < len(outer) for place in places),
            f"inner_blobs {inner} and outer_blobs_idx {places} do not name one of {len(outer)} "
            "blobs each.",
        )
        chosen = [outer[place] for place in places]
        fits = len({*chosen}) == len(chosen) and {*chosen} == {*outer}
        require(fits, f"inner_blobs stand for {chosen}; each of {list(outer)} is needed once.")
        self._names = dict(zip(inner, chosen, strict=True))

    def RunOnDevice(self) -> None:
        # The blob itself, not an output: a failed net leaves its scope pushed, as in Caffe2.
        stack = self.InputBlob(self.InputSize() - 1).GetMutable(WorkspaceStack)
        if self._is_gradient:
            scope = stack.pop(self._workspace, self._names)
        elif self.GetSingleArgument("reuse_workspace", False) and stack.depth:
            scope = stack.last(self._workspace, self._names)
        else:
            scope = stack.push(self._workspace, self._names)
        scope.run(self._net, self._data, "Do")
        if not self._is_gradient and self.GetSingleArgument("copy_external_blobs", False):
            scope.copy_bound(self._names)
