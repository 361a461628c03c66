# SPDX-License-Identifier: Apache-2.0
"""NetBuilder: nets, and builders of further steps, that run in order.

A builder is a context manager; `current` is the innermost one, to whose net operators are added. It
becomes an ExecutionStep by ``core.to_execution_step``. With a stop blob, a bool, that step runs
until the blob is True, which is looked at after each net. Follows caffe2/python/net_builder.py,
PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
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
