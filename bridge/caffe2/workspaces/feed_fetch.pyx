# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""FeedBlob, FetchBlob, FetchTorch: one look-up and the common case here, the rest in Python.

Their time does not depend on how many blobs there are.
"""

from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_CheckExact

from bridge.c10.observe cimport observed, unlikely
from bridge.caffe2.blobs.core cimport BlobCore, CurrentBlobs, put
from bridge.exchange.numpy cimport copy_to_array
from bridge.exchange.torch_export cimport export_torch

from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.blobs.int8 import Int8Tensor
from bridge.caffe2.workspaces.workspace import feed_failure, feed_named, find_named, state

cdef extern from "Python.h":
    PyObject* PyDict_GetItemWithError(object, object) except? NULL

cdef CurrentBlobs _current = state


cdef BlobCore _known(object name):
    """The blob of that name; None where there is none, or the name is not a plain str."""
    cdef PyObject* found
    if PyUnicode_CheckExact(name):
        found = PyDict_GetItemWithError(_current.blobs, name)
        if found != NULL:
            return <BlobCore><object>found
    return None


def FeedBlob(name, value, device_option=None):
    """Make the blob `name` hold `value`, and the blob if there is none; return True.

    A torch tensor, an ``at.Tensor``, a ``caffe2.Tensor`` or another DLPack producer is shared: no
    bytes are copied, and it has to be contiguous. Only what does not lie in memory as it reads is
    copied: torch's lazy conjugate and negative bits, misaligned elements. A NumPy array is copied,
    into the buffer that the blob's own tensor has where the type is the same and it fits, so that
    what `FetchTorch` gave out sees it; memory that came from outside is never written. `bytes` and
    `str` are stored as a string, arrays of them as a tensor of strings.

    `device_option` says where a NumPy array goes: anything that names a device, or an object with
    Caffe2's `device_type` and `device_id`; None is the current device scope's, or else the CPU.

    Raises EnforceNotMet: `value` is none of these or cannot be shared (the reason is its
    ``__cause__``), or `name` is no name. The blob then holds what it held, and no name is created.

    >>> import torch
    >>> from bridge.caffe2 import workspace
    >>> t = torch.zeros(2)
    >>> workspace.FeedBlob("shared", t), workspace.FetchTorch("shared") is t
    (True, True)
    """
    cdef BlobCore blob
    if unlikely(observed):
        return feed_named(state.workspace, name, value, device_option, "FeedBlob")
    if device_option is None and not unlikely(_current.device_scopes):
        blob = _known(name)
        if blob is not None:
            try:
                put(blob, value)
            except Exception as cause:
                raise feed_failure(name, value, cause, "FeedBlob") from cause
            return True
    return feed_named(state.workspace, name, value, device_option, "FeedBlob")


def FetchBlob(name):
    """Copy what the blob `name` holds: a tensor into NumPy, a string into `bytes`.

    A tensor of strings gives an object array of `bytes`.

    Raises EnforceNotMet: no such blob (also a KeyError), or it holds nothing that can be fetched;
    the error says what it holds. A quantized tensor is got by `FetchInt8Blob`.

    >>> import numpy as np
    >>> from bridge.caffe2 import workspace
    >>> workspace.FeedBlob("copied", np.arange(3.0))
    True
    >>> workspace.FetchBlob("copied")
    array([0., 1., 2.])
    """
    cdef BlobCore blob = _known(name)
    if blob is None:
        blob = find_named(state.workspace, name, "FetchBlob")
    if not unlikely(observed) and blob._tensor is not None and blob._tensor.impl.c_dtype.c_is_pod:
        try:
            return copy_to_array(blob._tensor.impl, "FetchBlob")
        except Exception:       # there may be another way; if not, it says why
            return _fetched(blob, name)
    return _fetched(blob, name)


cdef object _fetched(BlobCore blob, object name):
    """What FetchBlob gives of anything but plain memory."""
    fetched = blob._fetch(name, "FetchBlob")
    if type(fetched) is Int8Tensor:
        raise EnforceTypeError(f"{blob._called(name)}; use FetchInt8Blob.", "FetchBlob")
    return fetched


def FetchTorch(name):
    """Return the tensor of the blob `name` to torch, sharing memory.

    A torch tensor that was fed is that same object. Data is shared, metadata is not: each side
    resizes for itself. Memory that torch cannot have as it is, read-only memory for one, is copied.

    Raises EnforceNotMet: no such blob (also a KeyError), it holds no tensor, or one that torch
    cannot have.
    """
    cdef BlobCore blob = _known(name)
    if blob is None:
        blob = find_named(state.workspace, name, "FetchTorch")
    if not unlikely(observed) and blob._tensor is not None:
        try:
            return export_torch(blob._tensor.impl)
        except Exception:       # the error is the one that names the blob
            return blob._to_torch(name, "FetchTorch")
    return blob._to_torch(name, "FetchTorch")
