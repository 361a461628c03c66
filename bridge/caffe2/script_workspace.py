# SPDX-License-Identifier: Apache-2.0
"""``caffe2.python.workspace`` of `install`: the names of `bridge.caffe2.workspace`.

Where that refuses to fetch a blob that holds no tensor, scripts get what Caffe2 gives them: a
description with the name of the class in C++, as `bytes`.

Follows ``fetch_blob``, caffe2/python/pybind_state.cc, PyTorch 1.8.1.

>>> from bridge.caffe2 import script_workspace as workspace
>>> workspace.CreateBlob("made"), workspace.FetchBlob("made")
(True, b'made, a C++ native class of type nullptr (uninitialized).')
>>> workspace.blobs["made"] == workspace.FetchBlobs(["made"])[0]
True
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.c10.errors import EnforceKeyError, EnforceNotMet
from bridge.caffe2 import workspace as _workspace
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.blobs.int8 import Int8TensorCPU
from bridge.caffe2.blobs.objects import Map
from bridge.caffe2.tensor import Tensor
from bridge.caffe2.workspaces.blob_functions import BlobDict
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.named_blobs import find_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = list(_workspace.__all__)

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


def FetchBlob(name: Any) -> Any:
    """Return a copy of the value of the blob `name`; of no tensor and no string, a description.

    Raises EnforceNotMet: there is no such blob (also a KeyError), or its tensor cannot be fetched.
    """
    return fetched(_workspace.FetchBlob, name)


def fetched(fetch: Callable[[Any], Any], name: Any) -> Any:
    """Return what `fetch` gives for the blob `name`; of no tensor and no string, a description.

    Raises EnforceNotMet: as `fetch` for a name or a tensor.
    """
    try:
        return fetch(name)
    except EnforceKeyError:
        raise
    except EnforceNotMet:
        held = find_named(current.workspace, name, "FetchBlob")._contents()
        if isinstance(held, (Tensor, Int8TensorCPU)):
            raise
        return f"{_text(name)}, a C++ native class of type {_native(held)}.".encode()


def FetchBlobs(names: Iterable[Any]) -> list[Any]:
    """Return copies of the values of the blobs `names`, each as `FetchBlob` does."""
    try:
        every = list(names)
    except TypeError as cause:
        raise wrap_error("FetchBlobs takes a sequence of names", "FetchBlobs", cause) from cause
    return [FetchBlob(name) for name in every]


class _Blobs(BlobDict):
    __slots__ = ()

    def __getitem__(self, name: Any) -> Any:
        return FetchBlob(name)


blobs = _Blobs()


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _native(held: Any) -> str:
    """Return the name in C++ of the class of an object."""
    if held is None:
        return "nullptr (uninitialized)"
    if isinstance(held, Map):
        key, value = _INTEGERS[held.keys.name], _INTEGERS[held.values.name]
        return (
            f"std::unordered_map<{key}, {value}, std::hash<{key}>, std::equal_to<{key}>, "
            f"std::allocator<std::pair<const {key}, {value}> > >"
        )
    for one in type(held).__mro__[:-1]:
        if one.__name__ in _NAMES:
            return _NAMES[one.__name__]
    return type(held).__name__


def __getattr__(name: str) -> Any:
    return getattr(_workspace, name)


def __dir__() -> list[str]:
    return dir(_workspace)
