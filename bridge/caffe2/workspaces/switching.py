# SPDX-License-Identifier: Apache-2.0
"""Switching between workspaces, and resetting the current one.

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

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.base.names import listed, name_of
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.workspaces.current import Outside, current
from bridge.caffe2.workspaces.workspace import Workspace


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
