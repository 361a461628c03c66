# SPDX-License-Identifier: Apache-2.0
"""Blocks of a NetBuilder: loops, guards and conditions, as steps with stop blobs or as operators.

Follows caffe2/python/net_builder.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.core.control_ops_util import add_if_op, add_while_op
from bridge.caffe2.core.net import Net
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.task.builder import NetBuilder, require


def _here() -> Any:
    """Return the net that operators are added to."""
    return NetBuilder.current().current_net()


class _Once(NetBuilder):
    """A block that runs once, even if a stop blob makes a loop of its step."""

    def _end(self) -> None:
        if self._stop_blob is not None:
            self.stop_if(self.current_net().Const(True))


class StopGuard(_Once):
    """A block that runs once, or until it stops, and says which."""

    def __init__(self, has_stopped_blob: Any = None, name: str | None = None) -> None:
        super().__init__(name)
        self._stopped = has_stopped_blob
        self._ran = False

    def __enter__(self) -> Any:
        entered = super().__enter__()
        self._stopped = _here().Const(True, blob_out=self._stopped)
        return entered

    def _end(self) -> None:
        self._ran = True
        self.current_net().Const(False, blob_out=self._stopped)
        super()._end()

    def has_stopped(self) -> Any:
        """Return the blob that is True after the block if it stopped before its end."""
        require(self._ran, "Context not used yet.", "stop_guard")
        return self._stopped


class Loop(NetBuilder):
    """A block that runs `iters` times, a number or a blob; None: until it stops."""

    def __init__(self, iters: Any = None, name: str | None = None) -> None:
        super().__init__(name, _stop_blob_required=True)
        self._count = iters
        if iters is not None:
            net = _here()
            self._one, self._iter = net.Const(1), net.Const(0)
            self._count = iters if isinstance(iters, BlobReference) else net.Const(iters)

    def iter(self) -> Any:
        """Return the blob with the number of the iteration, from 0."""
        require(
            self._count is not None,
            "This loop does not have a number of iterations.",
            "loop",
        )
        return self._iter

    def __enter__(self) -> Any:
        entered = super().__enter__()
        if self._count is not None:
            self.stop_if(_here().GE([self._iter, self._count]))
        return entered

    def _end(self) -> None:
        if self._count is not None:
            self.current_net().Add([self._iter, self._one], [self._iter])


class IfBlock(_Once):
    """A block that runs if a bool blob is True, and no earlier block of its chain has run.

    cond_blob: None for the last block of a chain. _already_ran: the bool blob that the blocks of a
    chain share.
    """

    def __init__(
        self, cond_blob: Any = None, name: str | None = None, _already_ran: Any = None
    ) -> None:
        super().__init__(name)
        require(cond_blob or _already_ran, "A condition is needed.", "If")
        self._is_last = cond_blob is None
        net = _here()
        unless = [] if cond_blob is None else [net.Not(cond_blob)]
        if _already_ran is None:
            self._already_ran = net.Const(False)
        else:
            self._already_ran = _already_ran
            unless.insert(0, _already_ran)
        self._unless = unless[0] if len(unless) == 1 else net.Or(unless)

    def __enter__(self) -> Any:
        entered = super().__enter__()
        self.stop_if(self._unless)
        self.current_net().Const(True, blob_out=self._already_ran)
        return entered

    def Elif(self, cond: Any, name: str | None = None) -> Any:
        """Add a block that runs if `cond` is True and this and earlier blocks have not run."""
        return self._next(cond, name)

    def Else(self, name: str | None = None) -> Any:
        """Add a block that runs if this and earlier blocks have not run."""
        return self._next(None, name)

    def _next(self, cond: Any, name: str | None) -> Any:
        require(not self._is_last, "Nothing follows an Else.", "If")
        block = IfBlock(cond, name or self.name, _already_ran=self._already_ran)
        return NetBuilder.current().add(block)


class _NetBlock(NetBuilder):
    """A block that becomes one net."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name, _use_control_ops=True)

    def _end(self) -> None:
        self._set_net(self._finished(self._merged()))

    def _finished(self, net: Net | None) -> Net | None:
        """Return the net of the block; `net`: its operators, None if there are none."""
        raise NotImplementedError

    def _set_net(self, net: Net | None) -> None:
        self._children = [] if net is None else [net]


class IfNet(_NetBlock):
    """The operator If, which runs the block if `cond_blob` is True."""

    def __init__(self, cond_blob: Any, name: str | None = None) -> None:
        super().__init__(name)
        require(cond_blob, "Conditional blob is not specified for an If net", "IfNet")
        self._cond_blob = cond_blob
        self._then_net: Net | None = None

    def _finished(self, net: Net | None) -> Net:
        self._then_net = net or Net("empty_then_net")
        return self._with_else(None)

    def _with_else(self, else_net: Net | None) -> Net:
        made = Net(f"{self.name}/if_{'else_' if else_net else ''}net")
        add_if_op(made, self._cond_blob, self._outer_scope, self._then_net, else_net)
        return made


class ElseNet(_NetBlock):
    """The block that the If of the block before runs if its condition is False."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        parent = NetBuilder.current(required=False)
        before = parent._children[-1] if parent and parent._children else None
        require(isinstance(before, IfNet), "Else follows IfNet at once.", "Else")
        self._if: Any = before

    def _finished(self, net: Net | None) -> None:
        if net:
            self._if._set_net(self._if._with_else(net))


class WhileNet(_NetBlock):
    """The operator While, which repeats the block, after a block of its condition."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._condition: WhileCondition | None = None

    def _finished(self, net: Net | None) -> Net:
        condition = self._condition
        if condition is None or condition._cond_net is None:
            require(False, "Condition builder must be specified in While op", "WhileNet")
            raise AssertionError  # for type checkers
        made = Net(f"{self.name}/while_net")
        body = net or Net("empty_loop_body_net")
        blob, of_condition = condition._cond_blob, condition._cond_net
        add_while_op(made, blob, self._outer_scope, body, of_condition)
        return made


class WhileCondition(_NetBlock):
    """The condition of WhileNet: the only output of its last operator, one bool.

    Other blobs of the block do not exist outside of it.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        parent = NetBuilder.current(required=False)
        caller = "Condition"
        if not isinstance(parent, WhileNet):
            require(False, "Use of Condition outside of WhileNet", caller)
            return
        require(parent._condition is None, "WhileNet has a condition already.", caller)
        require(not parent._children, "The condition comes before the body of a loop.", caller)
        parent._condition = self
        self._cond_blob: BlobReference | None = None
        self._cond_net: Net | None = None

    def _finished(self, net: Net | None) -> Net | None:
        operators: Any = net.Proto().op if net else []
        require(
            operators and len(operators[-1].output) == 1,
            "The last operator of a condition has one output, the condition.",
            "Condition",
        )
        self._cond_net, self._cond_blob = net, BlobReference(operators[-1].output[0])
        return net
