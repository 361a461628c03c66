# SPDX-License-Identifier: Apache-2.0
"""Descriptions of blobs without a tensor, as of Caffe2's Python: their classes' names in C++."""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError, EnforceNotMet
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.objects import Map
from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.tensor import Tensor
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.named_blobs import find_named

_INTEGERS = {"int": "int", "int32": "int", "int64": "long int", "int64_t": "long int"}
# Of the classes of objects in blobs, as typeid().name() of g++ says them, demangled.
_NAMES = {
    "AtomicBool": "std::unique_ptr<std::atomic<bool> >",
    "BlobsQueue": "std::shared_ptr<caffe2::BlobsQueue>",
    "Counter": "std::unique_ptr<caffe2::Counter<long int> >",
    "DBReader": "caffe2::db::DBReader",
    "Index": "std::unique_ptr<caffe2::IndexBase>",
    "Mutex": "std::unique_ptr<std::mutex>",
    "PackedWeight": "std::unique_ptr<fbgemm::PackedGemmMatrixB<short unsigned int> >",
    "RebatchingQueue": "std::unique_ptr<caffe2::RebatchingQueue>",
    "StatRegistry": "std::unique_ptr<caffe2::StatRegistry>",
    "StoreHandler": "std::unique_ptr<caffe2::StoreHandler>",
    "TensorVector": "std::unique_ptr<std::vector<caffe2::Tensor> >",
    "TextFileReader": "std::unique_ptr<caffe2::TextFileReaderInstance>",
    "Timer": "caffe2::TimerInstance*",
    "TreeCursor": "std::unique_ptr<caffe2::dataset_ops::TreeCursor>",
    "WorkspaceStack": "caffe2::detail::WorkspaceStack",
}


def fetched(fetch: Callable[[Any], Any], name: Any, table: BlobTable | None = None) -> Any:
    """Return ``fetch(name)``; for a blob with neither a tensor nor a string, a description.

    table: where the blob is; None is the current workspace.
    Raises EnforceNotMet: as `fetch` for a name or a tensor.
    """
    try:
        return fetch(name)
    except EnforceKeyError:
        raise
    except EnforceNotMet:
        place = current.workspace if table is None else table
        contents = find_named(place, name, "FetchBlob")._contents()
        if isinstance(contents, (Tensor, Int8TensorCPU)):
            raise
        return f"{_text(name)}, a C++ native class of type {_native(contents)}.".encode()


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _native(contents: Any) -> str:
    """Return the name in C++ of the class of an object."""
    if contents is None:
        return "nullptr (uninitialized)"
    if isinstance(contents, Map):
        key, value = _INTEGERS[contents.keys.name], _INTEGERS[contents.values.name]
        return (
            f"std::unordered_map<{key}, {value}, std::hash<{key}>, std::equal_to<{key}>, "
            f"std::allocator<std::pair<const {key}, {value}> > >"
        )
    for one in type(contents).__mro__[:-1]:
        if one.__name__ in _NAMES:
            return _NAMES[one.__name__]
    return type(contents).__name__
