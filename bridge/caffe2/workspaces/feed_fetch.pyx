# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""HasBlob, FeedBlob, FetchBlob, FetchTorch: a look-up and the common case, the rest in Python.

Their time does not depend on the number of blobs. They are built-in functions (``binding=False``),
which CPython calls faster than Cython's own: 27 ns for `FetchTorch`, not 31.
"""

from cpython.list cimport PyList_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact

from bridge.c10.python_api cimport make_immortal
from bridge.c10.reports cimport is_observed, unlikely
from bridge.c10.tensor_impl cimport TensorImpl, is_pod_now
from bridge.caffe2.blobs.core cimport BlobCore, tensor_of, torch_of_blob
from bridge.caffe2.blobs.put cimport put
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.caffe2.workspaces.current cimport Current, find_blob_in, workspace_of
from bridge.exchange.numpy cimport copy_to_array

from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.names import name_of
from bridge.caffe2.blobs.feed import feed_error
from bridge.caffe2.blobs.int8 import Int8Tensor
from bridge.caffe2.definitions.scope import open_device_scopes as _scopes
from bridge.caffe2.execution.blob_table import find_blob
from bridge.caffe2.workspaces.current import current as _instance
from bridge.caffe2.workspaces.named_blobs import feed_named, find_named

cdef Current _current = _instance
cdef list _open_device_scopes = _scopes
make_immortal(_open_device_scopes)


cdef BlobCore _known(object name):
    """Return the current workspace's own blob of that name; None: no such blob, or not a str."""
    if PyUnicode_CheckExact(name):
        return <BlobCore>find_blob_in(_current, name)
    return None


def HasBlob(name: Any) -> bool:
    """Return whether there is a blob `name`. Raises EnforceNotMet: `name` is not a name.

    >>> from bridge.caffe2 import workspace
    >>> workspace.HasBlob("absent")
    False
    """
    if _known(name) is not None:
        return True
    return find_blob(workspace_of(_current), name_of(name, "HasBlob")) is not None


def FeedBlob(name: Any, value: Any, device_option: Any = None) -> bool:
    """Set the blob `name`, created if it does not exist, to `value`; return True.

    A torch tensor, an ``at.Tensor``, a ``caffe2.Tensor`` or another DLPack producer is shared: no
    bytes are copied, and it has to be contiguous. It is copied only if its memory does not contain
    its values as they are: torch's lazy conjugate and negative bits, misaligned elements. A NumPy
    array is copied, into the buffer of the blob's own tensor if that has the same type and size, so
    that tensors from `FetchTorch` see the new values; memory that came from outside is never
    written. `bytes` and `str` are stored as a string, arrays of them as a tensor of strings.

    device_option: the device of a NumPy array: a device by any of its names, or an object with
    Caffe2's `device_type` and `device_id`; None: the current device scope's, else the CPU.

    Raises EnforceNotMet: `value` is none of these or cannot be shared (the reason is its
    ``__cause__``), or `name` is not a name. The blob is then unchanged, and no blob is created.

    >>> import torch
    >>> from bridge.caffe2 import workspace
    >>> t = torch.zeros(2)
    >>> workspace.FeedBlob("shared", t), workspace.FetchTorch("shared") is t
    (True, True)
    """
    cdef BlobCore blob
    if unlikely(is_observed()):
        return feed_named(workspace_of(_current), name, value, device_option, "FeedBlob")
    if device_option is None and not unlikely(PyList_GET_SIZE(_open_device_scopes)):
        blob = _known(name)
        if blob is not None:
            try:
                put(blob, value)
            except Exception as cause:
                raise feed_error(name, value, "FeedBlob", cause) from cause
            return True
    return feed_named(workspace_of(_current), name, value, device_option, "FeedBlob")


def FetchBlob(name: Any) -> Any:
    """Return a copy of the value of the blob `name`: a tensor as NumPy array, a string as `bytes`.

    A tensor of strings becomes an object array of `bytes`. For quantized tensors see
    `FetchInt8Blob`.

    Raises EnforceNotMet: there is no such blob (also a KeyError), or its value cannot be fetched;
    the error describes the value.

    >>> import numpy as np
    >>> from bridge.caffe2 import workspace
    >>> workspace.FeedBlob("copied", np.arange(3.0))
    True
    >>> workspace.FetchBlob("copied")
    array([0., 1., 2.])
    """
    cdef BlobCore blob = _known(name)
    cdef Tensor tensor
    cdef TensorImpl impl
    if blob is None:
        blob = find_named(workspace_of(_current), name, "FetchBlob")
    tensor = tensor_of(blob)
    impl = None if tensor is None else tensor.impl
    if not unlikely(is_observed()) and impl is not None and is_pod_now(impl):
        try:
            return copy_to_array(impl, "FetchBlob")
        except Exception:
            pass                # _fetched has another way, or the error to raise
    return _fetched(blob, name)


cdef object _fetched(BlobCore blob, object name):
    """Return the result of FetchBlob for anything but plain memory."""
    fetched = blob._fetch(name, "FetchBlob")
    if type(fetched) is Int8Tensor:
        raise EnforceTypeError(f"{blob._describe(name)}; use FetchInt8Blob.", "FetchBlob")
    return fetched


def FetchTorch(name: Any) -> torch.Tensor:
    """Return the tensor of the blob `name` as a torch tensor that shares its memory.

    A torch tensor that was fed comes back as the same object. Data is shared, metadata is not: each
    side resizes on its own. Memory that torch cannot share, such as read-only memory, is copied.

    Raises EnforceNotMet: there is no such blob (also a KeyError), it does not hold a tensor, or
    torch does not have its element type.

    >>> import numpy as np
    >>> from bridge.caffe2 import workspace
    >>> workspace.FeedBlob("own", np.zeros(2))
    True
    >>> shared = workspace.FetchTorch("own")
    >>> shared[0] = 5
    >>> workspace.FetchBlob("own")
    array([5., 0.])
    """
    cdef BlobCore blob = _known(name)
    if blob is None:
        blob = find_named(workspace_of(_current), name, "FetchTorch")
    return torch_of_blob(blob, name, "FetchTorch")


# Threads that call them count no references to them.
make_immortal(HasBlob)
make_immortal(FeedBlob)
make_immortal(FetchBlob)
make_immortal(FetchTorch)
