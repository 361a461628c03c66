# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The contents of a blob: its fields, and changing them."""

cimport cython

from bridge.c10.python_api cimport lock_object, unlock_object
from bridge.c10.reports cimport is_observed
from bridge.c10.type_meta cimport string_type
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.exchange.torch_export cimport export_torch

from bridge.caffe2.base.wrapped_errors import wrap_error
from bridge.caffe2.blobs.string_arrays import as_bytes


@cython.auto_pickle(True)     # as copies of a workspace need it
cdef class BlobCore:
    """The contents of a blob: a tensor in `_tensor`, or else an object in `_object`.

    Other threads may look at any time. So `_own`, which lets NumPy arrays be copied into the
    tensor, is cleared before the tensor changes and set after it. The previous contents are
    released last: their destructors may run Python code that uses this blob.
    """

    # pyi: _tensor: Tensor | None
    # pyi: _meta: TypeMeta | None
    # pyi: _handle: weakref.ref[Any] | None
    def _contents(self) -> Any:
        """Return the tensor or object that the blob holds; None: nothing."""
        with cython.critical_section(self):
            return self._object if self._tensor is None else self._tensor

    def _own_tensor(self) -> Tensor | None:
        """Return the tensor that arrays may be copied into; None if the blob holds none."""
        return own_tensor_of(self)

    def _live_handle(self) -> Any:
        """Return the blob's BlobTensor, if somebody still uses it; else None."""
        with cython.critical_section(self):
            handle = self._handle
        return None if handle is None else handle()

    def to_torch(self) -> torch.Tensor:
        """Return the tensor as a ``torch.Tensor``, shared; the one that was fed is returned itself.

        Raises EnforceNotMet: the blob does not hold a tensor, or torch does not support it.
        """
        return torch_of_blob(self, None, "Blob.to_torch")

    def _set_tensor(self, Tensor tensor not None, bint own) -> None:
        """Make the blob hold `tensor`; `own` as the field `_own`."""
        hold_tensor(self, tensor, own)

    def _set_string(self, value: bytes | str) -> None:
        """Make the blob hold a string. Raises EnforceNotMet: text that UTF-8 cannot encode."""
        try:
            encoded = as_bytes(value)
        except UnicodeEncodeError as cause:
            raise wrap_error("A string is stored as UTF-8", "Blob", cause) from cause
        self._set_object(encoded, string_type)

    def _set_object(self, value: Any, meta: TypeMeta | None) -> None:
        """Make the blob hold an object of the type `meta`; both None: nothing."""
        with cython.critical_section(self):
            _previous = self._tensor, self._object, self._meta
            self._own = False
            self._meta = meta
            self._object = value
            self._tensor = None

    def _replace(self, Tensor tensor not None) -> None:
        """Make the blob hold `tensor`, new and with elements that do not fit the present tensor.

        In Caffe2 the present tensor gets them, so the blob's BlobTensor follows.
        """
        cdef Tensor previous = tensor_of(self)
        handle = self._live_handle()
        self._set_tensor(tensor, True)
        if previous is not None and handle is not None and handle._tensor is previous:
            handle._tensor = tensor

    def _describe(self, name: Any) -> str:
        """Return "Blob 'x' holds ...", for errors; `name` may be None."""
        if isinstance(name, bytes):
            name = name.decode()
        subject = "The blob" if name is None else f"Blob {str(name)!r}"
        return f"{subject} holds {self._describe_contents()}"

    def _describe_contents(self) -> str:
        """Return the value in words, such as "a string of 4 bytes"."""
        contents = self._contents()
        if contents is None:
            return "nothing (it was created and not fed, or was reset)"
        if isinstance(contents, bytes):
            return f"a string of {len(contents)} bytes"
        if not isinstance(contents, Tensor):
            return f"an object of {type(contents).__qualname__}"
        if not contents.defined():
            return "an undefined tensor"
        kind = contents.dtype().name if contents.dtype() else "no type yet"
        state = "" if contents.storage_initialized() else ", not allocated"
        sizes = list(contents.sizes())
        return f"a tensor of {kind}, sizes {sizes}, on {contents.GetDevice()}{state}"


cdef object export_blob(BlobCore blob, object name, str caller):
    """Do as `torch_of_blob`, for what is not an imported torch.Tensor."""
    cdef Tensor tensor = tensor_of(blob)
    if tensor is not None and not is_observed():
        try:
            return export_torch(tensor.impl)
        except Exception:
            pass        # `_to_torch` fails likewise; its error describes the value
    return blob._to_torch(name, caller)


cdef int hold_tensor(BlobCore blob, Tensor tensor, bint own) except -1:
    """Make the blob hold `tensor`; `own` as the field `_own`."""
    _tensor, _object = None, None       # the old value, released on return
    lock_object(blob)
    _tensor, _object = blob._tensor, blob._object
    blob._own = False
    blob._tensor = tensor
    blob._object = None
    blob._own = own
    unlock_object()
    return 0
