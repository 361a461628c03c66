# SPDX-License-Identifier: Apache-2.0
"""Functions on blobs of the current workspace beside `feed_fetch`.

>>> import numpy as np
>>> from bridge.caffe2 import workspace
>>> workspace.ResetWorkspace()
True
>>> workspace.CreateBlob("x"), workspace.HasBlob("x"), workspace.Blobs()
(True, True, ['x'])
>>> workspace.FeedBlob("x", np.arange(3, dtype=np.float32)), workspace.FeedBlob("y", "text")
(True, True)
>>> workspace.FetchBlobs(["x", "y"])
[array([0., 1., 2.], dtype=float32), b'text']
>>> workspace.GetBlobSizeBytes("x"), workspace.GetBlobNUMANode("x")
(12, -1)
>>> workspace.ResetBlob("x")
>>> workspace.blobs
<blobs of workspace 'default': 'x', 'y'>

A blob as the bytes of a BlobProto, and back:

>>> workspace.FeedBlob("x", np.arange(2, dtype=np.int32))
True
>>> message = workspace.SerializeBlob("x")
>>> workspace.DeserializeBlob("y", message)
>>> workspace.FetchBlob("y")
array([0, 1], dtype=int32)

A quantized blob:

>>> import bridge
>>> from bridge.caffe2 import Tensor
>>> data = Tensor(bridge.from_dlpack(np.array([12, 14], np.uint8)))
>>> blob = workspace.Workspace.current.create_blob("q")
>>> blob.Reset(workspace.Int8TensorCPU(data, 0.5, 10))
>>> workspace.FetchInt8Blob("q")
Int8Tensor(data=array([12, 14], dtype=uint8), scale=0.5, zero_point=10)
>>> workspace.FetchInt8BlobRealVal("q")
array([1., 2.], dtype=float32)
>>> isinstance(workspace.FetchInt8Blob("q"), workspace.Int8Tensor), workspace.ResetWorkspace()
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping

from bridge.annotation import Any, Array
from bridge.caffe2.base.names import listed, name_of
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.int8 import Int8Tensor
from bridge.caffe2.execution.blob_table import (
    find_blob,
    find_or_create,
    put_new,
    visible_names,
)
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchBlob
from bridge.caffe2.workspaces.feed_fetch import HasBlob as HasBlob
from bridge.caffe2.workspaces.named_blobs import fetch_int8_named, find_named


def Blobs() -> list[str]:
    """Return the names of the blobs, sorted."""
    return visible_names(current.workspace)


def CreateBlob(name: Any) -> bool:
    """Create an empty blob `name` unless it exists; return True.

    Raises EnforceNotMet: `name` is not a name.
    """
    find_or_create(current.workspace, name_of(name, "CreateBlob"))
    return True


def ResetBlob(name: Any) -> None:
    """Empty the blob `name`; the blob itself stays.

    Raises EnforceNotMet, also a KeyError: there is no such blob.
    """
    find_named(current.workspace, name, "ResetBlob").Reset()


def FetchBlobs(names: Iterable[Any]) -> list[Any]:
    """Return copies of the values of the blobs `names`, each as `FetchBlob` does.

    Raises EnforceNotMet: `names` is not a sequence, or as `FetchBlob`.
    """
    return fetch_each(names, FetchBlob)


def fetch_each(names: Iterable[Any], fetch: Callable[[Any], Any]) -> list[Any]:
    """Return the results of a function for `names`; see `FetchBlobs`."""
    with wrapping("FetchBlobs takes a sequence of names", "FetchBlobs", TypeError):
        every = list(names)
    return [fetch(name) for name in every]


def FetchInt8Blob(name: Any) -> Int8Tensor:
    """Return a copy of the quantized blob `name`: data, scale and zero point.

    Raises EnforceNotMet: there is no such blob (also a KeyError), or it holds something else (also
    an AssertionError).
    """
    return fetch_int8_named(current.workspace, name, "FetchInt8Blob")


def FetchInt8BlobRealVal(name: Any) -> Array:
    """Return the real numbers of the quantized blob `name`: (data - zero_point) * scale, float32.

    Raises EnforceNotMet as `FetchInt8Blob`.
    """
    data, scale, zero_point = fetch_int8_named(current.workspace, name, "FetchInt8BlobRealVal")
    real: Array = (data.astype("int32") - int(zero_point)).astype("float32") * scale
    return real


def GetBlobSizeBytes(name: Any) -> int:
    """Return the bytes of the tensor in the blob `name`; 0 if it holds something else.

    An element of a tensor of strings counts its itemsize and the bytes of its string.
    Raises EnforceNotMet, also a KeyError: there is no such blob.
    """
    return find_named(current.workspace, name, "GetBlobSizeBytes")._size_bytes()


def GetBlobNUMANode(name: Any) -> int:
    """Return -1: NUMA is not enabled.

    Raises EnforceNotMet, also a KeyError: there is no such blob.
    """
    find_named(current.workspace, name, "GetBlobNUMANode")
    return -1


def SerializeBlob(name: Any) -> bytes:
    """Return the value of the blob `name` as a BlobProto, byte for byte as Caffe2 writes it.

    For tensors of Caffe2's types, strings, and Int8 tensors. Elements are copied once.

    Raises EnforceNotMet: there is no such blob (also a KeyError), Caffe2 has no message for its
    value, or it takes more than 2 GiB, which protobuf does not read.
    """
    from bridge.caffe2.blobs.serialize import serialize  # most programs write no messages

    caller = "SerializeBlob"
    text = name_of(name, caller)
    return serialize(find_named(current.workspace, text, caller), text, caller, text)


def DeserializeBlob(name: Any, serialized: Any) -> None:
    """Set the blob `name` to a copy of the value of a BlobProto, bytes as `SerializeBlob` returns.

    A blob that does not exist is created. The elements of a tensor are written to the buffer of the
    blob's own tensor if type and size fit; memory that came from outside is never written. A chunk,
    part of a large tensor, is written to its place in the whole; chunks may come in any order.

    Raises EnforceNotMet: the bytes are not such a message, contradict themselves, or hold a type
    that is not available here; or `name` is not a name. The blob is then unchanged, and no blob is
    created.
    """
    from bridge.caffe2.blobs.serialize import deserialize

    caller = "DeserializeBlob"
    workspace, text = current.workspace, name_of(name, caller)
    known = find_blob(workspace, text)
    blob = Blob() if known is None else known
    deserialize(blob, serialized, f"Blob {text!r}", caller)
    if known is None:
        put_new(workspace._blobs, text, blob)


class BlobDict(MutableMapping[str, "Any"]):
    """The values of the current workspace's blobs by name: reading fetches, writing feeds.

    >>> from bridge.caffe2 import workspace
    >>> workspace.blobs["greeting"] = "hello"
    >>> workspace.blobs["greeting"], "greeting" in workspace.blobs
    (b'hello', True)
    >>> del workspace.blobs["greeting"]
    """

    __slots__ = ()

    def __getitem__(self, name: Any) -> Any:
        return FetchBlob(name)

    def __setitem__(self, name: Any, value: Any) -> None:
        FeedBlob(name, value)

    def __delitem__(self, name: Any) -> None:
        find_named(current.workspace, name, "blobs")
        current.workspace._remove(name_of(name, "blobs"))

    def __contains__(self, name: object) -> bool:
        return HasBlob(name)

    def __iter__(self) -> Iterator[str]:
        return iter(Blobs())

    def __len__(self) -> int:
        return len(Blobs())

    def clear(self) -> None:
        """Remove all blobs of the current workspace."""
        current.workspace._ready.clear()
        current.blobs.clear()

    # Values are arrays, whose comparison is not a bool.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<blobs of workspace {current.name!r}: {listed(Blobs())}>"


blobs = BlobDict()
