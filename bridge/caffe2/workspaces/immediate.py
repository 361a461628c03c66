# SPDX-License-Identifier: Apache-2.0
"""Immediate mode: CreateOperator also runs the operator, in a workspace of its own.

For trying things out. Follows caffe2/python/workspace.py, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import core, workspace
>>> workspace.StartImmediate(i_know=True)
>>> workspace.FeedImmediate("x", np.array([-1.0, 2.0], np.float32))
True
>>> op = core.CreateOperator("Relu", ["x"], ["y"])
>>> workspace.FetchImmediate("y")
array([0., 2.], dtype=float32)
>>> workspace.IsImmediate(), workspace.ImmediateBlobs(), workspace.HasBlob("y")
(True, ['x', 'y'], False)
>>> workspace.RunOperatorImmediate(op)
>>> workspace.StopImmediate()
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.definitions.create_operator import observers
from bridge.caffe2.workspaces.blob_functions import Blobs
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchBlob
from bridge.caffe2.workspaces.run_once import RunOperatorOnce
from bridge.caffe2.workspaces.workspace import ResetWorkspace, WorkspaceGuard

_WORKSPACE = "_CAFFE2_IMMEDIATE"


# The root folder of the workspace while the mode is on; None while it is off.
_folder: str | None = None


def IsImmediate() -> bool:
    """Return whether immediate mode is on."""
    return _folder is not None


def root_folder() -> str:
    """Return the root folder of the mode's workspace; an empty str while the mode is off."""
    return _folder or ""


def StartImmediate(i_know: bool = False) -> None:
    """Run each operator as soon as it is created, in a workspace of the mode's own.

    A mode that is on is restarted, with no blobs. Prints a warning unless `i_know`.
    """
    global _folder
    StopImmediate()
    if not i_know:
        print(
            "Immediate mode is on: each operator runs when it is created, in a workspace of its "
            "own, which StopImmediate() empties. It is slow, and meant for trying things out."
        )
    import shutil
    import tempfile  # these take a while to import, and few programs use this mode

    folder = tempfile.mkdtemp()
    try:
        with WorkspaceGuard(_WORKSPACE):
            ResetWorkspace(folder)
        _folder = folder
        observers.append(RunOperatorImmediate)
    except BaseException:
        _folder = None
        shutil.rmtree(folder, ignore_errors=True)
        raise


def StopImmediate() -> None:
    """End the mode, if it is on, and remove its blobs."""
    global _folder
    import shutil

    folder = _folder
    if folder is None:
        return
    place = observers.index(RunOperatorImmediate)
    with WorkspaceGuard(_WORKSPACE):
        ResetWorkspace()
    # parts that need no memory
    _folder = None
    del observers[place]
    try:
        shutil.rmtree(folder, ignore_errors=True)  # a script may have removed it
    except MemoryError:
        return  # the mode has ended, and an empty folder is not worth an error


def ImmediateBlobs() -> list[str]:
    """Return the names of the blobs of the mode's workspace, sorted."""
    with WorkspaceGuard(_WORKSPACE):
        return Blobs()


def RunOperatorImmediate(op: Any) -> None:
    """Run an operator once in the mode's workspace. Raises EnforceNotMet as `RunOperatorOnce`."""
    with WorkspaceGuard(_WORKSPACE):
        RunOperatorOnce(op)


def FetchImmediate(name: Any) -> Any:
    """Return a copy of the value of a blob of the mode's workspace, as `FetchBlob` does."""
    with WorkspaceGuard(_WORKSPACE):
        return FetchBlob(name)


def FeedImmediate(name: Any, arr: Any, device_option: Any = None) -> bool:
    """Feed a blob of the mode's workspace, as `FeedBlob` does; return True."""
    with WorkspaceGuard(_WORKSPACE):
        return FeedBlob(name, arr, device_option)
