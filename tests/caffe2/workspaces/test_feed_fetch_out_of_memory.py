# SPDX-License-Identifier: Apache-2.0
"""Each allocation of a call of the workspace may fail; its blobs and nets are then as before.

Calls that take a message are in `test_nets_out_of_memory`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated
from tests.helpers.out_of_memory import (
    Call,
    blobs,
    check_call,
    nothing,
    require_failing_allocations,
    require_list_new,
    require_python_code,
)

require_failing_allocations()


def prepare() -> None:
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.arange(3.0, dtype=np.float32))
    workspace.FeedBlob("y", np.arange(4.0, dtype=np.float32))
    workspace.FeedBlob("z", np.zeros(3, np.float32))
    workspace.FeedBlob("s", "text")
    workspace.RunOperatorOnce(QUANTIZE)
    workspace.CreateNet(NET, overwrite=True)


def filled(value: Any) -> caffe2.Blob:
    blob = caffe2.Blob()
    blob.feed(value)
    return blob


NET = core.Net("net")
NET.Copy("x", "z")
COPY = core.CreateOperator("Copy", "x", "z")
MESSAGE = filled(np.arange(3.0)).serialize("x")
OBJECTS = np.array([b"a", "b"], dtype=object)
CAFFE2 = caffe2.Tensor([2], [1.0, 2.0])

QUANTIZE = core.CreateOperator("Int8Quantize", "x", "q", Y_scale=0.5, Y_zero_point=1)


def in_another() -> None:
    with workspace.WorkspaceGuard("another"):
        pass


def blobs_of_the_mode() -> Any:
    return blobs(), workspace.ImmediateBlobs(), workspace.FetchImmediate("i").tolist()


def immediate() -> None:
    workspace.StartImmediate(i_know=True)
    workspace.FeedImmediate("i", np.ones(3))


CALLS: dict[str, Callable[[], object]] = {
    "FeedBlob": lambda: workspace.FeedBlob("x", np.ones((5, 5))),
    "FeedBlob of the same sizes": lambda: workspace.FeedBlob("x", np.ones(3, np.float32)),
    "FeedBlob of text": lambda: workspace.FeedBlob("s", "longer text"),
    "FeedBlob of strings": lambda: workspace.FeedBlob("x", OBJECTS),
    "FeedBlob of an at.Tensor": lambda: workspace.FeedBlob("x", at.zeros(2)),
    "FeedBlob of a caffe2.Tensor": lambda: workspace.FeedBlob("x", CAFFE2),
    "FeedBlob of torch": lambda: workspace.FeedBlob("x", torch.zeros(2)),
    "FeedBlob of a new name": lambda: workspace.FeedBlob("new", np.ones(3)),
    "FeedBlob of torch with a new name": lambda: workspace.FeedBlob("new", torch.zeros(2)),
    "FetchBlob": lambda: workspace.FetchBlob("x"),
    "FetchBlob of text": lambda: workspace.FetchBlob("s"),
    "FetchTorch": lambda: workspace.FetchTorch("x"),
    "names": lambda: (workspace.Blobs(), workspace.HasBlob("x"), workspace.Nets()),
    "DeserializeBlob": lambda: workspace.DeserializeBlob("y", MESSAGE),
    "DeserializeBlob of a new name": lambda: workspace.DeserializeBlob("new", MESSAGE),
    "DeserializeBlob over text": lambda: workspace.DeserializeBlob("s", MESSAGE),
    "ResetWorkspace": lambda: workspace.ResetWorkspace(),
    "SwitchWorkspace": lambda: workspace.SwitchWorkspace("other", True),
    "RunNet": lambda: workspace.RunNet("net"),
    "RunOperatorOnce": lambda: workspace.RunOperatorOnce(COPY),
    "DeleteNet": lambda: workspace.DeleteNet("net"),
    "CreateBlob": lambda: workspace.CreateBlob("new"),
    "ResetBlob": lambda: workspace.ResetBlob("x"),
    "FetchBlobs": lambda: workspace.FetchBlobs(["x", "y"]),
    "FetchInt8Blob": lambda: workspace.FetchInt8Blob("q"),
    "FetchInt8BlobRealVal": lambda: workspace.FetchInt8BlobRealVal("q"),
    "GetBlobSizeBytes": lambda: (
        workspace.GetBlobSizeBytes("x"),
        workspace.GetBlobSizeBytes("s"),
        workspace.GetBlobNUMANode("x"),
    ),
    "SerializeBlob": lambda: workspace.SerializeBlob("x"),
    "SerializeBlob of text": lambda: workspace.SerializeBlob("s"),
    "workspaces": lambda: (
        workspace.CurrentWorkspace(),
        workspace.Workspaces(),
        workspace.RootFolder(),
        workspace.IsImmediate(),
        workspace._immediate_root_folder,
        workspace.GetStats(),
        workspace.RegisteredOperators(),
    ),
    "WorkspaceGuard": lambda: in_another(),
    "StartImmediate": lambda: workspace.StartImmediate(i_know=True),
    "StopImmediate": lambda: workspace.StopImmediate(),
    "FeedImmediate": lambda: workspace.FeedImmediate("x", np.ones(3)),
    "FetchImmediate": lambda: (workspace.FetchImmediate("i"), workspace.ImmediateBlobs()),
    "blobs": lambda: (workspace.blobs["x"], len(workspace.blobs), repr(workspace.blobs)),
    "blobs, removed": lambda: workspace.blobs.__delitem__("x"),
    "blobs, fed": lambda: workspace.blobs.update(new=np.ones(3)),
    "Workspace": lambda: workspace.Workspace(workspace.Workspace.current),
    "Workspace.create_blob": lambda: workspace.Workspace.current.create_blob("new"),
    "Workspace.feed_blob": lambda: workspace.Workspace.current.feed_blob("new", np.ones(3)),
    "Workspace.fetch_blob": lambda: workspace.Workspace.current.fetch_blob("x"),
    "Workspace.fetch_int8_blob": lambda: workspace.Workspace.current.fetch_int8_blob("q"),
    "Workspace.has_blob": lambda: workspace.Workspace.current.has_blob("x"),
    "Workspace.remove_blob": lambda: workspace.Workspace.current.remove_blob("x"),
    "Workspace.blobs": lambda: (
        workspace.Workspace.current_blobs["x"],
        workspace.Workspace.current.nets,
        list(workspace.Workspace.current.blobs),
    ),
    "CallWithExceptionIntercept": lambda: workspace.CallWithExceptionIntercept(
        workspace.HasBlob, nothing, "net", "x"
    ),
}
# Of one blob, which is made first.
OF_A_BLOB: dict[str, Call] = {
    "Blob": (nothing, lambda _: caffe2.Blob()),
    "Blob.feed": (caffe2.Blob, lambda b: b.feed(np.ones(3))),
    "Blob.fetch": (lambda: filled(np.ones(3)), lambda b: b.fetch()),
    "Blob.deserialize": (lambda: filled(np.ones(5)), lambda b: b.deserialize(MESSAGE)),
    "Blob.tensor": (lambda: filled(np.ones(3)), lambda b: (b.tensor(), b.to_torch())),
    "Blob.swap": (lambda: [filled(np.ones(3)), filled("x")], lambda v: v[0].swap(v[1])),
    "Blob.serialize": (
        lambda: filled(np.ones(3)),
        lambda b: (b.serialize("x"), b.is_tensor(), b.IsType(c10.tensor), repr(b)),
    ),
    "Blob.Get": (
        lambda: filled(np.ones(3)),
        lambda b: (b.Get(c10.tensor), b.GetMutable(c10.tensor), b.as_tensor()),
    ),
    "Blob.GetMutable": (caffe2.Blob, lambda b: b.GetMutable(c10.tensor)),
    "Blob.Reset": (lambda: filled(np.ones(3)), lambda b: b.Reset()),
}
# Lists made by C; code in Python that does more (`require_python_code`), or leaves memory behind.
MAKES_LISTS = {"FeedBlob of strings", "RunNet"}
RUNS_PYTHON = {
    "Blob.deserialize",
    "Blob.serialize",
    "DeserializeBlob",
    "DeserializeBlob of a new name",
    "DeserializeBlob over text",
    "SerializeBlob",
    "StopImmediate",
}
MAY_LEAK = {"RunNet", "RunOperatorOnce", "FetchBlobs", "StartImmediate", "StopImmediate"}
OF_THE_MODE = {"StopImmediate", "FeedImmediate", "FetchImmediate"}


@isolated
@pytest.mark.parametrize("name", [*CALLS, *OF_A_BLOB])
def test_a_call_without_memory_changes_nothing_and_leaks_nothing(name: str) -> None:
    if name in MAKES_LISTS:
        require_list_new()
    if name in RUNS_PYTHON:
        require_python_code()
    if name in OF_A_BLOB:
        wrong = check_call(OF_A_BLOB[name])
    else:
        function = CALLS[name]

        def start() -> None:
            workspace.StopImmediate()
            if workspace.CurrentWorkspace() != "default":
                workspace.SwitchWorkspace("default")
            prepare()
            if name in OF_THE_MODE:
                immediate()

        wrong = check_call(
            (nothing, lambda _: function()),
            start,
            blobs_of_the_mode if name in OF_THE_MODE else blobs,
            python_may_leak=name in MAY_LEAK,
        )
    assert not wrong, "\n".join(wrong)
