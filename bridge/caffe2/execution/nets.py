# SPDX-License-Identifier: Apache-2.0
"""Creating nets in a workspace and running them."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.c10.errors import EnforceKeyError, EnforceNotMet, EnforceValueError
from bridge.caffe2.base.errors import ReturnedFalseError, wrap_error
from bridge.caffe2.base.messages import as_message, kind_of, message_in
from bridge.caffe2.base.text import listed
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.execution.running import count_of
from bridge.caffe2.workspaces.workspace import (
    Workspace,
    created,
    found_blob,
    name_of,
    state,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CreateNet",
    "DeleteNet",
    "Nets",
    "RunNet",
    "RunNetOnce",
    "create_net",
    "created_net",
    "run_net_once",
]


def CreateNet(net: Any, overwrite: bool = False, input_blobs: Iterable[Any] | None = None) -> bool:
    """Make the operators of a net, in the current workspace, for `RunNet`; return True.

    `net` is a ``core.Net`` or a NetDef: a message of any class, or its bytes. `input_blobs` are
    created, empty, where there are none. With `overwrite` a net of the same name is replaced.

    Raises EnforceNotMet: no NetDef, one without a name, a net of that name is there, or an operator
    that cannot be made; nets and blobs are then what they were.
    """
    caller = "CreateNet"
    workspace = state.workspace
    try:
        names = [name_of(name, caller) for name in input_blobs or ()]
    except TypeError as cause:
        if isinstance(cause, EnforceNotMet):
            raise
        raise wrap_error("input_blobs are names", caller, cause) from cause
    new = [name for name in names if found_blob(workspace, name) is None]
    for name in new:
        created(workspace, name)
    try:
        create_net(workspace, as_message(net, "NetDef", caller), overwrite, caller)
    except BaseException:
        for name in new:
            workspace._blobs.pop(name, None)
        raise
    return True


def create_net(workspace: Workspace, message: Any, overwrite: bool, caller: str) -> RunnableNet:
    """Make a net in `workspace` and return it."""
    name = message.name
    if not message.HasField("name"):
        raise EnforceValueError(
            "The net has no name; one that is created needs one.",
            caller,
            condition="net.has_name()",
        )
    if name in workspace._nets and not overwrite:
        raise EnforceValueError(
            f"There is a net {name!r} already; give overwrite=True to replace it.",
            caller,
            condition="overwrite",
        )
    net = RunnableNet(message, workspace, caller)
    workspace._nets[name] = net
    return net


def RunNet(name: Any, num_iter: int = 1, allow_fail: bool = False) -> bool:
    """Run a net that was created, `num_iter` times; return True.

    `name` is its name, the ``core.Net``, or its NetDef. With `allow_fail` give False where an
    operator's RunOnDevice does.

    Raises EnforceNotMet: no such net (also a KeyError), or an operator failed; the error names the
    operator, its inputs and outputs and where in the net it is.
    """
    caller = "RunNet"
    net = created_net(name, caller)
    for _ in range(count_of(num_iter, "num_iter", caller)):
        try:
            net._run(caller)
        except EnforceNotMet as error:
            if allow_fail and isinstance(error.__cause__, ReturnedFalseError):
                return False
            raise
    return True


def created_net(name: Any, caller: str) -> RunnableNet:
    """Return the net of that name. Raises EnforceNotMet, also a KeyError: there is none."""
    nets = state.workspace._nets
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    if not isinstance(text, str) or (isinstance(name, bytes) and text not in nets):
        text = _name_of_net(name, caller)
    net = nets.get(text)
    if net is None:
        raise EnforceKeyError(
            f"There is no net {text!r} in workspace {state.name!r}, which has {listed(nets)}. "
            "Make it first by CreateNet(net).",
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
    """Make the operators of a net, run each once in turn, and forget them; return True.

    `net` is a ``core.Net`` or a NetDef: a message of any class, or its bytes.
    Raises EnforceNotMet as `CreateNet` and `RunNet`.
    """
    caller = "RunNetOnce"
    run_net_once(state.workspace, as_message(net, "NetDef", caller), caller)
    return True


def run_net_once(workspace: Workspace, message: Any, caller: str) -> None:
    """Make a net in `workspace` that is not kept there, and run it."""
    RunnableNet(message, workspace, caller)._run(caller)


def Nets() -> list[str]:
    """List the names of the nets of the current workspace, sorted."""
    return sorted(state.workspace._nets)


def DeleteNet(name: Any) -> None:
    """Forget a net of the current workspace, if there is one of that name; `name` as in `RunNet`.

    What runs goes on to its end. Raises EnforceNotMet: `name` names no net.
    """
    caller = "DeleteNet"
    net = message_in(name)
    text = net.name if kind_of(net) == "NetDef" else name_of(name, caller)
    state.workspace._nets.pop(text, None)
