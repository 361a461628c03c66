# SPDX-License-Identifier: Apache-2.0
"""The class Workspace, the first workspace, named "default", switching to others, and resetting.

>>> from bridge.caffe2 import workspace
>>> workspace.SwitchWorkspace("of_this_example", create_if_missing=True)
>>> workspace.CurrentWorkspace(), "default" in workspace.Workspaces()
('of_this_example', True)
>>> workspace.FeedBlob("here", b"text"), workspace.RootFolder()
(True, '.')
>>> with workspace.WorkspaceGuard("default"):
...     workspace.CurrentWorkspace(), workspace.HasBlob("here")
('default', False)
>>> workspace.ResetWorkspace(), workspace.Blobs()
(True, [])
>>> workspace.SwitchWorkspace("default")
"""

from __future__ import annotations

import os
from contextlib import ContextDecorator

from bridge.annotation import Any, ClassVar
from bridge.c10.errors import EnforceKeyError, EnforceTypeError, EnforceValueError
from bridge.caffe2.base.messages import as_message, kind_of, message_in
from bridge.caffe2.base.names import listed, name_of
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.int8 import Int8Tensor
from bridge.caffe2.execution.blob_table import BlobTable, find_blob, find_or_create
from bridge.caffe2.execution.definition import definition_of
from bridge.caffe2.workspaces.current import Outside, current
from bridge.caffe2.workspaces.named_blobs import feed_named, fetch_int8_named, fetch_named
from bridge.caffe2.workspaces.run_once import run_operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.execution.runnable_net import RunnableNet
    from bridge.caffe2.workspaces.blob_map import BlobMap


class _WorkspaceType(type):
    """The metaclass of `Workspace`, for the properties of the class itself."""

    @property
    def current(cls) -> Workspace:
        """The current workspace; the same object until a switch or a reset."""
        return current.workspace  # type: ignore[return-value]  # only Workspaces are put there

    @property
    def current_blobs(cls) -> BlobMap:
        """The blobs of the current workspace by name."""
        return cls.current.blobs


class Workspace(BlobTable, metaclass=_WorkspaceType):
    """A table of blobs by name, separate from every other workspace.

    ``Workspace()`` has no name and no blobs. ``Workspace(parent)`` is a child workspace: look-ups
    fall back to the parent, new blobs stay in the child. ``Workspace.current`` is the workspace
    that the functions of `bridge.caffe2.workspace` use, ``Workspace.current_blobs`` its blobs.

    Raises EnforceNotMet, also a TypeError: `parent` is not a Workspace.

    Follows Workspace, caffe2/core/workspace.h, and its Python class in
    caffe2/python/pybind_state.cc, PyTorch 1.8.1.

    >>> import torch
    >>> from bridge.caffe2 import core
    >>> from bridge.caffe2.workspace import Workspace
    >>> ws = Workspace()
    >>> ws.feed_blob("x", b"text"), ws.fetch_blob("x"), ws.blobs
    (True, b'text', {'x': <Blob that holds a string of 4 bytes>})
    >>> blob = ws.create_blob("y")
    >>> ws.has_blob("y"), ws.remove_blob("y"), list(ws.blobs)
    (True, None, ['x'])
    >>> Workspace(ws).fetch_blob("x")
    b'text'

    `fetch_int8_blob` fetches quantized blobs, as `FetchInt8Blob`. Operators, nets and plans run in
    the workspace:

    >>> values = torch.tensor([-1.0, 2.0])
    >>> ws.feed_blob("values", values)
    True
    >>> ws.run(core.CreateOperator("Relu", "values", "values"))
    >>> values
    tensor([0., 2.])
    >>> net = core.Net("doubling")
    >>> _ = net.Scale("values", "values", scale=2.0)
    >>> ws.create_net(net).run()
    >>> values, ws.nets
    (tensor([0., 4.]), {'doubling': <Net 'doubling' of 1 operators>})
    >>> Workspace.current.blobs is Workspace.current_blobs, Workspace.current is ws
    (False, False)
    """

    __slots__ = ()

    def __init__(self, parent: Workspace | None = None) -> None:
        if parent is not None and not isinstance(parent, Workspace):
            raise EnforceTypeError(
                f"The parent of a workspace is a Workspace, not a {type(parent).__name__}.",
                "Workspace",
            )
        super().__init__(parent)

    if TYPE_CHECKING:
        # Type checkers look here before the metaclass: one attribute for the class and instances.
        current: ClassVar[Workspace]
        current_blobs: ClassVar[BlobMap]

    else:

        @property
        def current(self) -> Workspace:
            """The current workspace, as ``Workspace.current``."""
            return current.workspace

        @property
        def current_blobs(self) -> BlobMap:
            """The blobs of the current workspace, as ``Workspace.current_blobs``."""
            return current.workspace.blobs

    @property
    def blobs(self) -> BlobMap:
        """The blobs by name, the parents' included: a live view."""
        from bridge.caffe2.workspaces.blob_map import BlobMap

        # From now on without this function, whose import takes five times as long as the rest.
        Workspace.blobs = property(BlobMap, doc=Workspace.blobs.__doc__)  # type: ignore[method-assign, assignment]
        return BlobMap(self)

    @property
    def nets(self) -> dict[str, RunnableNet]:
        """The nets created here by name: a new dict at each access."""
        return dict(sorted(self._nets.items()))

    def create_net(self, net: Any, overwrite: bool = False) -> RunnableNet:
        """Create a net, as `CreateNet` does, and return it; its ``run()`` runs it.

        Raises EnforceNotMet as `CreateNet`.
        """
        from bridge.caffe2.workspaces.named_nets import create_net

        caller = "Workspace.create_net"
        return create_net(self, as_message(net, "NetDef", caller), overwrite, caller)

    def run(self, obj: Any) -> None:
        """Run an operator, a net or a plan once: a ``core`` object or a message.

        Raises EnforceNotMet as `RunOperatorOnce`, `RunNetOnce` and `RunPlan`; also a ValueError if
        `obj` is none of these.
        """
        caller = "Workspace.run"
        message = message_in(obj)
        kind = kind_of(message)
        if kind == "OperatorDef":
            run_operator(self, definition_of(message, caller), caller)
        elif kind == "NetDef":
            from bridge.caffe2.workspaces.named_nets import run_net_once

            run_net_once(self, as_message(message, kind, caller), caller)
        elif kind in ("PlanDef", "ExecutionStep"):
            from bridge.caffe2.workspaces.plan_runs import plan_of, run_plan

            run_plan(self, plan_of(obj, caller), caller)
        else:
            raise EnforceValueError(
                f"Workspace.run takes an operator, a net or a plan, not {type(obj).__name__}.",
                caller,
            )

    def _child(self) -> Workspace:
        """Return a new child workspace."""
        return Workspace(self)

    def _last_failed_op_net_position(self) -> int:
        """Return the position in its net of the operator that failed last; 0 if none failed."""
        return self._failed_position

    def create_blob(self, name: Any) -> Blob:
        """Return the blob `name`; create an empty one if there is none.

        Raises EnforceNotMet: `name` is not a name.
        """
        return find_or_create(self, name_of(name, "Workspace.create_blob"))

    def feed_blob(self, name: Any, value: Any, device_option: Any = None) -> bool:
        """Feed the blob `name`, sharing or copying `value` as `FeedBlob` does; return True."""
        return feed_named(self, name, value, device_option, "Workspace.feed_blob")

    def fetch_blob(self, name: Any) -> Any:
        """Return a copy of the value of the blob `name`, as `Blob.fetch` does.

        Raises EnforceNotMet: there is no such blob (also a KeyError), or nothing to fetch.
        """
        return fetch_named(self, name, "Workspace.fetch_blob")

    def fetch_int8_blob(self, name: Any) -> Int8Tensor:
        """Return a copy of the quantized blob `name`, as `FetchInt8Blob` does."""
        return fetch_int8_named(self, name, "Workspace.fetch_int8_blob")

    def has_blob(self, name: Any) -> bool:
        """Return whether there is a blob `name`. Raises EnforceNotMet: `name` is not a name."""
        return find_blob(self, name_of(name, "Workspace.has_blob")) is not None

    def remove_blob(self, name: Any) -> None:
        """Remove the blob `name`, if there is one; references to the Blob stay valid.

        Raises EnforceNotMet: `name` is not a name.
        """
        self._remove(name_of(name, "Workspace.remove_blob"))


current.put("default", Workspace())


def CurrentWorkspace() -> str:
    """Return the name of the current workspace; the first one is ``"default"``."""
    return current.name


def Workspaces() -> list[str]:
    """Return the names of the workspaces, sorted; a ``Workspace()`` has no name."""
    return sorted(current.workspaces)


def RootFolder() -> str:
    """Return the root folder of the current workspace; ``"."`` unless a reset set it."""
    return current.workspace._root_folder


def SwitchWorkspace(name: Any, create_if_missing: bool = False) -> None:
    """Set the workspace `name` as the current one, for all threads.

    With a `Workspace`, which has no name, `CurrentWorkspace` keeps returning the previous name, and
    a reset does not change the workspace of that name.

    Raises EnforceNotMet: there is no such workspace (also a KeyError) and `create_if_missing` is
    False, or `name` is not a name.
    """
    if isinstance(name, Workspace):
        with current.lock:
            current.enter(name)
        return
    text = name_of(name, "SwitchWorkspace")
    with current.lock:
        workspace = current.workspaces.get(text)
        if workspace is None:
            if not create_if_missing:
                raise EnforceKeyError(
                    f"There is no workspace {text!r}; there are {listed(Workspaces())}. "
                    "SwitchWorkspace(name, True) creates one.",
                    "SwitchWorkspace",
                    condition="create_if_missing",
                )
            workspace = Workspace()
        current.put(text, workspace)


class _Guard(Outside, ContextDecorator):
    """The result of `WorkspaceGuard`; a generator would need memory to end."""

    def __init__(self, inside: Any) -> None:
        self._inside = inside

    def __enter__(self) -> None:
        self._remember()
        try:
            SwitchWorkspace(self._inside, True)
        except BaseException:
            self._forget()
            raise


def WorkspaceGuard(workspace_name: Any) -> _Guard:
    """Return a context manager that switches to a workspace, and back at the end.

    workspace_name: its name, or a `Workspace`; it is created if it does not exist. Entering raises
    EnforceNotMet if it is neither.
    """
    return _Guard(workspace_name)


def ResetWorkspace(root_folder: str | os.PathLike[str] | None = None) -> bool:
    """Replace the current workspace by a new, empty one; return True.

    root_folder: its root folder, which is created if it does not exist; None: the old one's.
    Blobs that are still referenced, and tensors that share their memory, stay valid.

    Raises EnforceNotMet: the folder cannot be created; the workspace is then unchanged.
    """
    caller = "ResetWorkspace"
    folder = None
    if root_folder is not None:
        with wrapping(f"{root_folder!r} cannot be the root folder", caller):
            folder = os.fsdecode(root_folder)
            if not os.path.exists(folder):
                os.makedirs(folder, exist_ok=True)
    with current.lock:
        workspace = Workspace()
        workspace._root_folder = current.workspace._root_folder if folder is None else folder
        if current.workspaces[current.name] is current.workspace:
            current.put(current.name, workspace)
        else:
            # A Workspace without a name was switched to; the one of that name stays as it is.
            current.enter(workspace)
    return True
