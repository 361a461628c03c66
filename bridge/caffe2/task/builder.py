# SPDX-License-Identifier: Apache-2.0
"""NetBuilder and its blocks: nets, loops, guards and conditions, that run in order.

A builder is a context manager; `current` is the innermost one, to whose net operators are added. It
becomes an ExecutionStep by ``core.to_execution_step``. With a stop blob, a bool, that step runs
until the blob is True, which is looked at after each net; with control operators it is one net,
whose conditions and loops are operators. Follows caffe2/python/net_builder.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.core.control_ops_util import add_if_op, add_while_op
from bridge.caffe2.core.net import Net, prefixes
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.modeling.context import Managed


def require(condition: Any, message: str, caller: str) -> None:
    """Raise EnforceNotMet, also an AssertionError, unless `condition` holds."""
    if not condition:
        raise EnforceAssertionError(message, caller)


class NetBuilder(Managed):
    """Nets and builders that run in order, one after the other.

    name: the last part of the name, after the name of the current builder. initial_scope: names of
    blobs that exist already, for blocks with control operators. _fullname: the whole name.
    _stop_blob, _stop_blob_required: the blob that ends the step, and whether there has to be one.
    _use_control_ops: the builder becomes one net, whose conditions and loops are operators.

    >>> from bridge.caffe2 import core, workspace
    >>> from bridge.caffe2.net_builder import NetBuilder, ops
    >>> with NetBuilder("count") as builder:
    ...     total = ops.Const(0)
    ...     with ops.loop(4) as loop:
    ...         total = ops.Add([total, loop.iter()], [total])
    >>> plan = core.Plan("count")
    >>> plan.AddStep(core.to_execution_step(builder))
    >>> workspace.RunPlan(plan), workspace.FetchBlob(total).item()
    (True, 6)
    >>> workspace.ResetWorkspace()
    True
    """

    def __init__(
        self,
        name: str | None = None,
        initial_scope: Iterable[Any] | None = None,
        _stop_blob_required: bool = False,
        _stop_blob: BlobReference | None = None,
        _fullname: str | None = None,
        _use_control_ops: bool = False,
    ) -> None:
        caller = "NetBuilder"
        require(not (_fullname and name), "Cannot set both _fullname and name", caller)
        require(
            not (_use_control_ops and (_stop_blob_required or _stop_blob)),
            "Stop blobs are not used with control operators",
            caller,
        )
        parent = NetBuilder.current(required=False)
        self.name = _fullname or "/".join(filter(None, [parent and parent.name, name]))
        self._outer_scope = parent._scope() if parent else set()
        self._outer_scope |= {str(blob) for blob in initial_scope or ()}
        self._children: list[Any] = []
        self._current_net: Net | None = None
        self._stop_blob = _stop_blob
        self._stop_blob_required = _stop_blob_required
        self._use_control_ops = _use_control_ops
        self._frozen = False

    def _scope(self) -> set[str]:
        """Return the names of the blobs that exist at this place."""
        names = set(self._outer_scope)
        for child in self._children:
            if isinstance(child, Net):
                names |= child.UsedBlobNames()
            elif isinstance(child, NetBuilder) and child._use_control_ops:
                names |= child._scope()
        return names

    def stop_blob(self) -> BlobReference:
        """Return the blob that ends the step, which the current net is about to set."""
        require(
            not self._use_control_ops, "Stop blobs are not used with control operators", self.name
        )
        if self._stop_blob is None:
            net = self.current_net()
            self._stop_blob = BlobReference(net.NextName("stop_blob"), net)
            net.Const(False, blob_out=self._stop_blob)
            if net is not self._children[0]:  # the step asks for it after each net before this
                before = Net("stop_blob_init")
                before.Const(False, blob_out=self._stop_blob)
                self._children.insert(0, before)
        return self._stop_blob

    def stop_if(self, blob: Any) -> None:
        """End the step, at this place, if the blob is True."""
        stop = self.stop_blob()
        self.current_net().Or([stop, blob], [stop])
        self._current_net = None

    def add(self, child: Any) -> Any:
        """Append a net or another builder; return it. A net is the current one then."""
        require(not self._frozen, f"This NetBuilder ({self}) has been built already.", "add")
        one_net = isinstance(child, Net) or getattr(child, "_use_control_ops", False)
        require(
            one_net or not self._use_control_ops,
            "Expected Net or NetBuilder with control ops",
            "NetBuilder.add",
        )
        self._children.append(child)
        self._current_net = child if isinstance(child, Net) else None
        return child

    def current_net(self, name: str | None = None) -> Net:
        """Return the net that operators are added to; a new one if `name` is given."""
        if self._current_net is None or name is not None:
            self.add(Net(name))
        assert self._current_net is not None
        return self._current_net

    def freeze(self) -> None:
        """End the building, of the builders inside too."""
        for child in self._children:
            if isinstance(child, NetBuilder):
                child.freeze()
        self._current_net = None
        self._frozen = True

    def get(self) -> list[Any]:
        """Return the nets and builders, in order. Nothing can be added then."""
        self.freeze()
        return self._children

    def __enter__(self) -> Any:
        prefixes.open.append(self.name)
        return super().__enter__()

    def __exit__(self, etype: Any = None, *error: object) -> None:
        super().__exit__(etype, *error)
        prefixes.open.pop()
        if etype is None:
            self._end()
        if etype is None and self._use_control_ops and self._children:
            merged = self._merged()
            self._children = [merged] if merged else []
        self.freeze()
        require(
            etype is not None or not self._stop_blob_required or self._stop_blob is not None,
            f"This NetBuilder ({self}) requires a stop condition to be set with `stop` or "
            "`stop_if`",
            "NetBuilder.__exit__",
        )

    def _end(self) -> None:
        """Add the last parts; for derived classes."""

    def _merged(self) -> Net | None:
        """Take the nets out of the builder; return the first with the operators of all, or None.

        Its external outputs are the blobs that exist outside of the builder.
        """
        nets = [
            one
            for child in self._children
            for one in (child.get() if isinstance(child, NetBuilder) else [child])
        ]
        self._children, self._current_net = [], None
        if not nets:
            return None
        merged: Net = nets[0]
        for net in nets[1:]:
            merged.AppendNet(net)
        outputs = merged.Proto().external_output
        outputs[:] = [name for name in outputs if name in self._outer_scope]
        return merged

    def __str__(self) -> str:
        return self.name or "Un-named NetBuilder"


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
