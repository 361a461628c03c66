# SPDX-License-Identifier: Apache-2.0
"""``caffe2.python.workspace`` of `install`: the names of `bridge.caffe2.workspace`.

Where that refuses to fetch a blob without a tensor, scripts get a description with the name of the
class in C++, as `bytes`, as from Caffe2.

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

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.caffe2 import workspace as _workspace
from bridge.caffe2.workspaces.blob_functions import BlobDict, fetch_each
from bridge.caffe2.workspaces.native_names import fetched

__all__ = list(_workspace.__all__)


def FetchBlob(name: Any) -> Any:
    """Return a copy of the value of the blob `name`; of no tensor and no string, a description.

    Raises EnforceNotMet: there is no such blob (also a KeyError), or its tensor cannot be fetched.
    """
    return fetched(_workspace.FetchBlob, name)


def FetchBlobs(names: Iterable[Any]) -> list[Any]:
    """Return copies of the values of the blobs `names`, each as `FetchBlob` does."""
    return fetch_each(names, FetchBlob)


class _Blobs(BlobDict):
    __slots__ = ()

    def __getitem__(self, name: Any) -> Any:
        return FetchBlob(name)


blobs = _Blobs()


def __getattr__(name: str) -> Any:
    return getattr(_workspace, name)


def __dir__() -> list[str]:
    return dir(_workspace)
