# SPDX-License-Identifier: Apache-2.0
"""Blocks of a NetBuilder that are operators: If and While around nets.

Follows caffe2/python/net_builder.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.core.control_ops_util import add_if_op, add_while_op
from bridge.caffe2.core.net import Net
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.task.builder import NetBuilder, require


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
