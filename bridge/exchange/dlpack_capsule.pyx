# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""From TensorImpl to DLPack capsules: what ``__dlpack__`` of the array API standard returns."""

import threading

from cpython.object cimport PyObject

from bridge.c10.copy cimport requested_copy
from bridge.c10.python_api cimport pointer, set_pointer
from bridge.c10.storage cimport READONLY, Storage, owner_of
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    device_index_of,
    device_type_of,
    is_undefined,
    seen,
    storage_flags,
)
from bridge.dlpack.abi cimport (
    DL_CPU,
    DLPACK_IS_COPIED,
    DLPACK_MAJOR,
    DLPACK_MINOR,
    has_streams,
)
from bridge.dlpack.capsule cimport new_capsule
from bridge.exchange.consumers cimport fit_for_consumer
from bridge.exchange.device_memory cimport to_device
from bridge.exchange.dlpack_export cimport IN_CAPSULE, export_legacy, export_versioned
from bridge.exchange.import_tensor cimport tristate

from bridge.c10.device import Device
from bridge.c10.errors import EnforceNotMet

cdef object _remembering = threading.RLock()
# The last max_version that was compared and found recent enough: a consumer passes the same
# tuple every time.
cdef tuple _versions = ((DLPACK_MAJOR, DLPACK_MINOR),)
cdef PyObject* _known_version = <PyObject*>_versions[0]


cdef int _remember(object max_version) except -1:
    """Compare with this tuple from now on; the former one is let go of."""
    global _versions
    with _remembering:
        kept = (max_version,)
        set_pointer(<void**>&_known_version, <void*>max_version)
        _versions = kept
    return 0


cdef object dlpack_capsule(
    TensorImpl impl, object stream, object max_version, object dl_device, object copy,
):
    """Return a DLPack capsule of `impl`; see Wrapper.__dlpack__."""
    cdef TensorImpl source
    cdef int flags = 0
    cdef bint versioned = False
    if copy is not None:
        tristate(copy)
    if <PyObject*>max_version == <PyObject*>pointer(<void**>&_known_version):
        versioned = True
    elif max_version is not None:
        if not isinstance(max_version, tuple) or len(<tuple>max_version) != 2:
            raise TypeError(f"max_version is a pair such as (1, 0), not {max_version!r}.")
        # (compared in Python: the numbers may be of any size and any type)
        versioned = (<tuple>max_version)[0] >= DLPACK_MAJOR
        if versioned:
            _remember(max_version)
    source = impl = seen(impl)
    if dl_device is not None:
        impl = _on_device(impl, dl_device, copy)
    if is_undefined(impl):
        impl.require_defined("__dlpack__")
    if copy is True and owner_of(impl.storage) is owner_of(source.storage):
        impl = requested_copy(impl, "__dlpack__")
    if storage_flags(impl) & READONLY or not impl.flags & CONTIGUOUS \
            or device_type_of(impl) != DL_CPU:
        impl = fit_for_consumer(impl, copy)
    if impl is not source and owner_of(impl.storage) is not owner_of(source.storage):
        flags = DLPACK_IS_COPIED
    if stream is not None or device_type_of(impl) != DL_CPU:
        _synchronise(impl.storage, source.storage, stream)
    if versioned:
        return new_capsule(export_versioned(impl, flags, IN_CAPSULE), True)
    return new_capsule(export_legacy(impl), False)


cdef TensorImpl _on_device(TensorImpl impl, object dl_device, object copy):
    try:
        kind, index = dl_device
        if index < 0:
            raise ValueError("The index is negative.")
        device = Device((int(kind), int(index)))
    except (TypeError, ValueError) as error:
        raise BufferError(
            f"dl_device {dl_device!r} is not a (device type, index) of DLPack.") from error
    try:
        return to_device(impl, device, copy)
    except (EnforceNotMet, ImportError, AssertionError) as error:
        raise BufferError(f"The tensor cannot be moved to {device}: {error}") from error


cdef int _synchronise(Storage storage, Storage source, object stream) except -1:
    """Make the consumer's stream wait for the work on ours (array API standard, __dlpack__).

    A copy of `source` in host memory is complete, so a stream of the device of `source`, which the
    consumer may name, need not wait.
    """
    if not has_streams(storage.device_type):
        if has_streams(source.device_type):
            from bridge.exchange.streams import check_stream
            check_stream(stream, source.device_type)
        elif stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
            raise TypeError(f"A stream is an int or None, not {stream!r}.")
        elif stream is not None and stream != -1:
            raise BufferError(
                f"There are no streams on {storage.device()}; stream must be None, not {stream!r}.")
        return 0
    from bridge.exchange.streams import make_consumer_wait
    make_consumer_wait(storage.device_index, stream, storage.device_type)
    return 0


cdef object immutable_capsule(TensorImpl impl, object stream):
    """Return a legacy capsule for a consumer that never writes: read-only memory is shared, too.

    `stream`: as in `__dlpack__` of the array API standard.
    """
    if has_streams(device_type_of(impl)):
        _synchronise(impl.storage, impl.storage, stream)
    return new_capsule(export_legacy(impl, True), False)


cdef class DLPackProducer:
    """A TensorImpl with ``__dlpack__``, for frameworks that import objects and not capsules.

    `immutable`: the consumer's tensors are immutable, so that read-only memory is shared by a
    legacy capsule, which has no read-only flag.
    """

    cdef TensorImpl impl
    cdef bint immutable

    def __init__(self, TensorImpl impl, immutable: bool = False) -> None:
        self.impl = impl
        self.immutable = immutable

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Return a DLPack capsule of the memory."""
        if self.immutable:
            return immutable_capsule(self.impl, stream)
        return dlpack_capsule(self.impl, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's (device type, index) of the memory."""
        return device_type_of(self.impl), max(device_index_of(self.impl), 0)
