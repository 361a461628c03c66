# SPDX-License-Identifier: Apache-2.0
"""CreateNet, RunNet, RunNetOnce, DeleteNet, Nets: the nets of the current workspace.

>>> import numpy as np
>>> from bridge.caffe2 import core, workspace
>>> net = core.Net("negation")
>>> y = net.Negative("x", "y")
>>> workspace.CreateNet(net, input_blobs=["x"])
True
>>> workspace.FeedBlob("x", np.array([1.0, 2.0], np.float32)), workspace.RunNet("negation")
(True, True)
>>> workspace.FetchBlob("y"), workspace.Nets()
(array([-1., -2.], dtype=float32), ['negation'])
>>> workspace.DeleteNet("negation")
>>> workspace.RunNetOnce(net)  # created for one run
True
>>> workspace.Nets(), workspace.ResetWorkspace()
([], True)
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError, EnforceNotMet, EnforceValueError
from bridge.caffe2.base.created_nets import find_created_by
from bridge.caffe2.base.hardware import without_absent_gpus
from bridge.caffe2.base.messages import as_message, kind_of, message_in
from bridge.caffe2.base.names import listed, name_of
from bridge.caffe2.base.wrapped_errors import ReturnedFalseError, wrap_error
from bridge.caffe2.definitions.ssa import reads_and_writes
from bridge.caffe2.execution.blob_table import (
    BlobTable,
    find_or_create,
    missing_from,
    remove_unused,
)
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.run_once import count_of


def CreateNet(net: Any, overwrite: bool = False, input_blobs: Iterable[Any] | None = None) -> bool:
    """Create the operators of a net in the current workspace, for `RunNet`; return True.

    net: a ``core.Net`` or a NetDef, as a message of any class or as bytes. input_blobs: names of
    blobs, which are created, empty, if they do not exist. overwrite: replace a net of that name.

    Raises EnforceNotMet: not a NetDef, one without a name, a net of that name exists, or an
    operator cannot be created; nets and blobs are then unchanged.
    """
    caller = "CreateNet"
    workspace = current.workspace
    try:
        names = [name_of(name, caller) for name in input_blobs or ()]
    except TypeError as cause:
        if isinstance(cause, EnforceNotMet):
            raise
        raise wrap_error("input_blobs is not a sequence of names", caller, cause) from cause
    new = missing_from(workspace, names)
    try:
        for name in new:
            find_or_create(workspace, name)
        create_net(workspace, as_message(net, "NetDef", caller), overwrite, caller)
    except BaseException:
        remove_unused(workspace._blobs, new)
        raise
    return True


def create_net(table: BlobTable, message: Any, overwrite: bool, caller: str) -> RunnableNet:
    """Create the net of a NetDef on the blobs of `table`, keep it there by its name, return it.

    Raises EnforceNotMet, also a ValueError: it has no name, or a net of that name exists and is not
    to be replaced (`overwrite`); and as `RunnableNet`.
    """
    name = message.name
    if not message.HasField("name"):
        raise EnforceValueError(
            "The net has no name; a net that is kept needs one.",
            caller,
            condition="net.has_name()",
        )
    if name in table._nets and not overwrite:
        raise _name_is_taken(name, caller)
    net = RunnableNet(message, table, caller)
    if overwrite:
        table._nets[name] = net
    elif table._nets.setdefault(name, net) is not net:
        raise _name_is_taken(name, caller)  # another thread has created it meanwhile
    return net


def _name_is_taken(name: str, caller: str) -> EnforceValueError:
    return EnforceValueError(
        f"There is already a net {name!r}; overwrite=True replaces it.",
        caller,
        condition="overwrite",
    )


def run_net_once(table: BlobTable, message: Any, caller: str) -> None:
    """Create the net of a NetDef on the blobs of `table`, run it once and discard it."""
    RunnableNet(message, table, caller)._run(caller)


def run_init_net(table: BlobTable, message: Any, caller: str) -> None:
    """Run the NetDef of an init net once on `table`, which has no blobs yet.

    Raises EnforceNotMet: the net reads blobs, so it is not an init net (also a ValueError), or an
    operator failed.
    """
    read, _ = reads_and_writes((one.input, one.output) for one in message.op)
    if read:
        raise EnforceValueError(
            f"The init net {message.name!r} reads {listed(read)}, which it does not make: it is a "
            "net that computes, and holds no weights. Were the two nets swapped?",
            caller,
        )
    run_net_once(table, without_absent_gpus(message, caller), caller)


def RunNet(name: Any, num_iter: int = 1, allow_fail: bool = False) -> bool:
    """Run a created net `num_iter` times; return True.

    name: its name, the ``core.Net``, or its NetDef. With `allow_fail`, return False if an
    operator's RunOnDevice returns False.

    Raises EnforceNotMet: there is no such net (also a KeyError), or an operator failed; the error
    names the operator, its inputs and outputs, and its position in the net. The outputs of that
    operator are unchanged; the operators before it have run.
    """
    caller = "RunNet"
    net = net_named(name, caller)
    for _ in range(count_of(num_iter, "num_iter", caller)):
        try:
            net._run(caller)
        except EnforceNotMet as error:
            if allow_fail and isinstance(error.__cause__, ReturnedFalseError):
                return False
            raise
    return True


def net_named(name: Any, caller: str) -> RunnableNet:
    """Return the net of that name. Raises EnforceNotMet, also a KeyError: there is no such net."""
    nets: dict[str, RunnableNet] = current.workspace._nets
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    if not isinstance(text, str) or (isinstance(name, bytes) and text not in nets):
        text = _name_of_net(name, caller)
    net = nets.get(text)
    if net is None:
        raise EnforceKeyError(
            f"There is no net {text!r} in workspace {current.name!r}, which has {listed(nets)}. "
            "Create it first by CreateNet(net).",
            caller,
            condition=f"GetNet({text!r})",
        )
    return net


def _name_of_net(net: Any, caller: str) -> str:
    if isinstance(net, bytes):
        try:
            return str(as_message(net, "NetDef", caller).name)
        except EnforceValueError:
            return name_of(net, caller)
    return str(as_message(net, "NetDef", caller).name)


def RunNetOnce(net: Any) -> bool:
    """Create the operators of a net, run each once in order, and discard them; return True.

    net: a ``core.Net`` or a NetDef, as a message of any class or as bytes. The blobs stay.
    Raises EnforceNotMet as `CreateNet` and `RunNet`.
    """
    caller = "RunNetOnce"
    run_net_once(current.workspace, as_message(net, "NetDef", caller), caller)
    return True


def Nets() -> list[str]:
    """Return the names of the nets of the current workspace, sorted."""
    return sorted(current.workspace._nets)


def DeleteNet(name: Any) -> None:
    """Remove a net from the current workspace, if there is one of that name; a run continues.

    name: as in `RunNet`. Raises EnforceNotMet: `name` is neither a name nor a net.
    """
    caller = "DeleteNet"
    net = message_in(name)
    text = net.name if kind_of(net) == "NetDef" else name_of(name, caller)
    current.workspace._nets.pop(text, None)


find_created_by(net_named)
