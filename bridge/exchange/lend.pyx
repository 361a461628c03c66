# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory for frameworks whose tensors are row-major, aligned and immutable.

They read legacy DLPack capsules, which cannot say read-only, and need not: nothing
writes through a tensor of theirs.
"""

from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.copy cimport reported_copy, requested_copy
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl
from bridge.dlpack.abi cimport DL_CUDA_HOST, has_streams
from bridge.dlpack.capsule cimport new_capsule
from bridge.exchange.devices cimport on_host
from bridge.exchange.export cimport export_legacy
from bridge.exchange.ingest cimport ingest, is_new
from bridge.wrapper cimport Wrapper


cdef TensorImpl shared_in(object x, object copy):
    """The TensorImpl of `x`, on its way out of the bridge again; of a wrapper its own.

    Page-locked memory is the CPU's here, which it is, too: not all frameworks know it. What
    ``copy=True`` asks for is left to be done: see left_to_copy.
    Raises BufferError as `ingest`, under ``copy=False`` where a copy would be needed.
    """
    if isinstance(x, Wrapper):
        impl = (<Wrapper>x).impl
        impl.require_defined("convert")
    else:
        impl = ingest(x, None, False if copy is False else None)
    return on_host(impl) if impl.storage.device_type == DL_CUDA_HOST else impl


cpdef TensorImpl to_lend(object x, object copy):
    """The same, for a framework to take or to refuse; BufferError where it is undefined."""
    cdef TensorImpl impl = shared_in(x, copy)
    impl.require_defined("convert")
    return impl


cpdef object left_to_copy(object x, TensorImpl impl, object copy):
    """`copy`, as it is still to be met for `impl`, the TensorImpl of `x`: None instead of True
    where `x` had to be copied to come in, so that the memory is new."""
    return None if copy is True and is_new(x, impl) else copy


cpdef TensorImpl row_major(TensorImpl impl, object copy, int64_t alignment=1):
    """`impl` where it is row-major, `alignment` bytes, and no copy is asked for; else a copy.

    Raises BufferError under ``copy=False`` where a copy would be needed.
    """
    if not impl.c_dtype.c_is_pod:
        return impl
    if copy is True:
        return requested_copy(impl, "convert")
    if not impl.flags & CONTIGUOUS:
        if copy is False:
            raise BufferError(
                f"The memory has strides {impl.strides().vec()}, and the framework holds "
                "row-major memory only. Allow a copy with copy=None.")
        return reported_copy(impl, "it is not row-major, as the framework's memory is", "convert")
    if impl.c_numel == 0 or <uintptr_t>impl.data("convert") % <uintptr_t>alignment == 0:
        return impl
    if copy is False:
        raise BufferError(
            f"The memory at {<uintptr_t>impl.data('convert'):#x} is not aligned to {alignment} "
            "bytes, as the framework's is. Allow a copy with copy=None.")
    return reported_copy(
        impl, f"it is not aligned to {alignment} bytes, as the framework's memory is", "convert")


cpdef object lent_capsule(TensorImpl impl, object stream=None):
    """A legacy DLPack capsule, of read-only memory too: for immutable tensors.

    `stream`: as `__dlpack__` of the array API standard takes it.
    """
    if has_streams(impl.storage.device_type):
        from bridge.exchange.streams import meet
        meet(impl.storage.device_index, stream, impl.storage.device_type)
    return new_capsule(export_legacy(impl, True), False)


cdef class Lent:
    """A TensorImpl as a producer of such capsules, for consumers that ask for an object."""

    cdef TensorImpl impl

    def __init__(self, TensorImpl impl):
        self.impl = impl

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """What lent_capsule gives."""
        return lent_capsule(self.impl, stream)

    def __dlpack_device__(self):
        """DLPack's (device type, index) of the memory."""
        return self.impl.storage.device_type, max(self.impl.storage.device_index, 0)
