# SPDX-License-Identifier: Apache-2.0
"""Control flow: the operators If and While, which run nets, and ONNXWhile, the Loop of ONNX.

Follows caffe2/operators/onnx_while_op.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.blob_table import BlobTable, find_or_create
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.gradients.control_flow import if_gradient, while_gradient
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.control.scopes import Scope, WorkspaceStack
from bridge.caffe2.operators.control.step_net import net_of


class Control(TorchOperator):
    """An operator that runs nets on its own workspace."""

    writes_last = False
    _has_effects = True

    def net(self, name: str, needed: bool) -> RunnableNet | None:
        """Return the net of argument `name`, created here, or None if there is none.

        Raises EnforceNotMet: there is none, and it is `needed`.
        """
        net = net_of(self, name, needed)
        return net and RunnableNet(net, self._workspace, self._definition.type)

    def condition(self) -> bool:
        """Return the bool of input 0. Raises EnforceNotMet: it is not exactly one."""
        found = self.x(0, (c10.bool,))
        require(found.numel() == 1, f"The condition must be one bool, not {found.numel()}.")
        return bool(found.item())


@register_operator(
    "If", ("cpu", "cuda"), inputs="1-*", outputs="0-*", inplace="any", gradient=if_gradient
)
class If(Control):
    """Run the net `then_net` if input 0 is True, otherwise `else_net`, if there is one.

    Raises EnforceNotMet: input 0 is not one bool; also the error of the net.
    Follows IfOp, caffe2/operators/if_op.cc, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.then, self.otherwise = self.net("then_net", True), self.net("else_net", False)

    def RunOnDevice(self) -> None:
        chosen = self.then if self.condition() else self.otherwise
        if chosen is not None:
            chosen.run()


@register_operator(
    "While", ("cpu", "cuda"), inputs="1-*", outputs="0-*", inplace="any", gradient=while_gradient
)
class While(Control):
    """Run `cond_net`, if there is one, then `loop_net` if input 0 is True, and repeat.

    Raises EnforceNotMet: input 0 is not one bool; also the error of a net.
    Follows WhileOp, caffe2/operators/while_op.cc, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.again, self.loop = self.net("cond_net", False), self.net("loop_net", True)

    def RunOnDevice(self) -> None:
        while True:
            if self.again is not None:
                self.again.run()
            if not self.condition():
                return
            if self.loop is not None:
                self.loop.run()


_CONDITIONS = (c10.int32, c10.bool, c10.int64)


@register_operator("ONNXWhile", inputs="2-*", outputs="0-*", inplace="any")
class ONNXWhile(TorchOperator):
    """Run the net `body` again and again; see the operator Loop of ONNX.

    Inputs: the largest number of runs, for `has_trip_count`; the condition of the first run, for
    `has_cond`; the first values of the variables. Inputs of the net: the number of the run, the
    condition, the variables. Its outputs: the condition of the next run, the variables, and what
    each run adds to the first dimension of a further output. Outputs: the variables and these.

    The runs share a workspace; with `save_scopes` each has its own, with `disable_scopes` it is the
    operator's. Raises EnforceNotMet: rows of different sizes, or the net failed.
    """

    _has_effects = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._body = net_of(self, "body", needed=True)
        if not self._body.HasField("name"):
            self._body.name = "loop_net"
        self._data = self._body.SerializeToString()
        self._save = self.GetSingleArgument("save_scopes", False)
        self._here = self.GetSingleArgument("disable_scopes", False)
        require(not (self._save and self._here), "disable_scopes excludes save_scopes.")
        count = self.GetSingleArgument("num_loop_carried_deps", -1)
        self._variables = self.InputSize() - 2 if count == -1 else count
        self._rows = len(self._body.external_output) - self._variables - 1
        require(
            self._rows >= 0 and len(self._body.external_input) >= self._variables + 2,
            f"The net has {len(self._body.external_input)} inputs and "
            f"{len(self._body.external_output)} outputs, and there are {self._variables} "
            "variables.",
        )
        self._stack = WorkspaceStack()

    def RunOnDevice(self) -> None:
        most = self.integers(0, (c10.int64,))[0]
        given = self.x(1, _CONDITIONS)
        condition = bool(given.reshape(-1)[0])
        values = [self.x(i + 2).clone() for i in range(self._variables)]
        rows: list[list[Tensor]] = [[] for _ in range(self._rows)]
        self._stack.clear()
        scope = self._scope()
        run = 0
        while (not self.GetSingleArgument("has_trip_count", False) or run < most) and (
            not self.GetSingleArgument("has_cond", False) or condition
        ):
            if run and self._save:
                scope = self._scope()
            table = scope.table
            self._feed(table, run, condition, given.dtype, values)
            scope.run(self._body, self._data, "ONNXWhile")
            found = [self._found(table, name) for name in self._body.external_output]
            condition = bool(found[0].reshape(-1)[0])
            values = [one.clone() for one in found[1 : self._variables + 1]]
            for kept, row in zip(rows, found[self._variables + 1 :], strict=True):
                sizes = list(kept[0].shape if kept else row.shape)
                require(
                    sizes == list(row.shape), f"Rows of sizes {list(row.shape)} follow {sizes}."
                )
                kept.append(row.clone())
            run += 1
        none = torch.empty(0, dtype=torch.int32, device="cpu")
        joined = [_joined(kept) if kept else none for kept in rows]
        for o, value in enumerate([*values, *joined]):
            self.put(o, value)

    def _scope(self) -> Scope:
        scope = self._stack.push(self._workspace, {})
        if self._here:
            scope.table = self._workspace
        else:
            scope.table._parent = self._workspace
        return scope

    def _feed(
        self, table: BlobTable, run: int, condition: bool, kind: Any, values: list[Tensor]
    ) -> None:
        number = torch.full((), run, dtype=torch.int64, device="cpu")
        first = torch.full((1,), condition, dtype=kind, device="cpu")
        for name, value in zip(self._body.external_input, [number, first, *values], strict=False):
            table._blobs.setdefault(name, Blob()).feed(value)

    def _found(self, table: BlobTable, name: str) -> Tensor:
        return operand(find_or_create(table, name).Get(c10.tensor))


def _joined(rows: list[Tensor]) -> Tensor:
    """Return rows as one tensor; Caffe2 extends the first dimension, so each is its own row."""
    return torch.cat(rows) if rows[0].dim() else torch.stack(rows)
