# SPDX-License-Identifier: Apache-2.0
"""Each allocation of a call of the workspace may fail; its blobs and nets are then as before.

Not here: calls that take a message. The protobuf library ends the process when it finds no memory;
this alone does so, by a segmentation fault in its C core (7.36.2, CPython 3.11)::

    import _testcapi
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    for n in range(60):
        _testcapi.set_nomemory(n, n + 1)
        try:
            FileDescriptorProto.FromString(b"\\n\\x01x\\x22\\x03\\n\\x01m").message_type[0].name
        except MemoryError:
            pass
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, caffe2
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated
from tests.helpers.out_of_memory import (
    Call,
    blobs,
    check_call,
    nothing,
    require_failing_allocations,
    require_lists,
)

require_failing_allocations()


def prepare() -> None:
    workspace.ResetWorkspace()
    workspace.FeedBlob("x", np.arange(3.0, dtype=np.float32))
    workspace.FeedBlob("y", np.arange(4.0, dtype=np.float32))
    workspace.FeedBlob("z", np.zeros(3, np.float32))
    workspace.FeedBlob("s", "text")
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
}
# Of one blob, which is made first.
OF_A_BLOB: dict[str, Call] = {
    "Blob": (nothing, lambda _: caffe2.Blob()),
    "Blob.feed": (caffe2.Blob, lambda b: b.feed(np.ones(3))),
    "Blob.fetch": (lambda: filled(np.ones(3)), lambda b: b.fetch()),
    "Blob.deserialize": (lambda: filled(np.ones(5)), lambda b: b.deserialize(MESSAGE)),
    "Blob.tensor": (lambda: filled(np.ones(3)), lambda b: (b.tensor(), b.to_torch())),
    "Blob.swap": (lambda: [filled(np.ones(3)), filled("x")], lambda v: v[0].swap(v[1])),
    "Blob.Reset": (lambda: filled(np.ones(3)), lambda b: b.Reset()),
}
MAKES_LISTS = {"FeedBlob of strings", "RunNet"}
MAKES_CELLS = {"RunNet", "RunOperatorOnce"}


@isolated
@pytest.mark.parametrize("name", [*CALLS, *OF_A_BLOB])
def test_a_call_that_finds_no_memory(name: str) -> None:
    require_lists(name, MAKES_LISTS)
    if name in OF_A_BLOB:
        wrong = check_call(OF_A_BLOB[name])
    else:
        function = CALLS[name]

        def start() -> None:
            if workspace.CurrentWorkspace() != "default":
                workspace.SwitchWorkspace("default")
            prepare()

        wrong = check_call((nothing, lambda _: function()), start, blobs, makes_cells=name in MAKES_CELLS)
    assert not wrong, "\n".join(wrong)
