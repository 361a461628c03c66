# SPDX-License-Identifier: Apache-2.0
"""Blobs that hold no tensor are described as the real Caffe2 did."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

ONE_BLOB = {"capacity": 2, "num_blobs": 1}
INT64 = core.DataType.INT64


@pytest.mark.parametrize(
    ("op_type", "args", "kind"),
    [
        ("CreateMutex", {}, "std::unique_ptr<std::mutex>"),
        ("CreateAtomicBool", {}, "std::unique_ptr<std::atomic<bool> >"),
        ("CreateCounter", {}, "std::unique_ptr<caffe2::Counter<long int> >"),
        ("CreateBlobsQueue", ONE_BLOB, "std::shared_ptr<caffe2::BlobsQueue>"),
        ("CreateRebatchingQueue", ONE_BLOB, "std::unique_ptr<caffe2::RebatchingQueue>"),
        (
            "CreateTreeCursor",
            {"fields": ["a"]},
            "std::unique_ptr<caffe2::dataset_ops::TreeCursor>",
        ),
        ("CreateTensorVector", {}, "std::unique_ptr<std::vector<caffe2::Tensor> >"),
        ("StatRegistryCreate", {}, "std::unique_ptr<caffe2::StatRegistry>"),
        ("TimerBegin", {"counter_name": "x"}, "caffe2::TimerInstance*"),
        ("LongIndexCreate", {}, "std::unique_ptr<caffe2::IndexBase>"),
        ("CreateScope", {}, "caffe2::detail::WorkspaceStack"),
        (
            "CreateMap",
            {},
            "std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, "
            "std::allocator<std::pair<const int, int> > >",
        ),
        (
            "CreateMap",
            {"key_dtype": INT64, "value_dtype": INT64},
            "std::unordered_map<long int, long int, std::hash<long int>, "
            "std::equal_to<long int>, std::allocator<std::pair<const long int, long int> > >",
        ),
    ],
)
def test_objects_are_described(op_type: str, args: dict[str, Any], kind: str) -> None:
    workspace.RunOperatorOnce(core.CreateOperator(op_type, [], ["x"], **args))
    assert workspace.C.fetch_blob("x") == f"x, a C++ native class of type {kind}.".encode()


def test_names_that_nothing_has_are_refused() -> None:
    with pytest.raises(KeyError, match="fetch_blob"):
        workspace.C.fetch_blob("nowhere")


def test_a_workspace_of_its_own_describes_its_objects() -> None:
    place = workspace.C.Workspace()
    place.create_blob("y")
    assert place.fetch_blob("y") == b"y, a C++ native class of type nullptr (uninitialized)."
    place.run(core.CreateOperator("CreateMutex", [], ["m"]))
    assert place.fetch_blob("m") == b"m, a C++ native class of type std::unique_ptr<std::mutex>."
    child = workspace.C.Workspace(place)
    assert child.fetch_blob("m") == place.fetch_blob("m")
    with pytest.raises(KeyError, match="fetch_blob"):
        place.fetch_blob("nowhere")
    with pytest.raises(EnforceNotMet, match="cannot be fetched"):
        place.blobs["m"].fetch()  # as in Caffe2
    assert isinstance(place, workspace.Workspace)
