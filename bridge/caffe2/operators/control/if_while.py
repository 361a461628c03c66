# SPDX-License-Identifier: Apache-2.0
"""Control flow: the operators If and While, which run nets."""

from __future__ import annotations

from typing import Any

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.gradients.control_flow import if_gradient, while_gradient
from bridge.caffe2.operators.base.torch_operator import TorchOperator


class Control(TorchOperator):
    """An operator that runs nets on its own workspace."""

    writes_last = False
    _has_effects = True

    def net(self, name: str, needed: bool) -> RunnableNet | None:
        """Return the net of argument `name`, created here, or None if there is none.

        Raises EnforceNotMet: there is none, and it is `needed`.
        """
        message = self.GetSingleArgument(name)
        if message is None:
            if needed:
                raise EnforceNotMet(
                    f"{self._definition.type} needs the argument {name!r}, a net.",
                    self._definition.type,
                    condition=f"HasArgument({name!r})",
                )
            return None
        return RunnableNet(message, self._workspace, self._definition.type)

    def condition(self) -> bool:
        """Return the bool of input 0. Raises EnforceNotMet: it is not exactly one."""
        found = self.x(0, (c10.bool,))
        if found.numel() != 1:
            raise EnforceNotMet(
                f"The condition must be one bool, not {found.numel()}.",
                "Condition",
                condition="numel() == 1",
            )
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
