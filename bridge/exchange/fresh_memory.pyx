# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Whether what an object hands out is its memory, or new memory at each call.

Note: Shared is proven
----------------------
``__array_interface__``, ``__array__`` and the importers of libraries may return memory that was
made for this call (Pillow, blosc2, h5py, zarr, columns of booleans). That is a copy. Two reads that
give two addresses, while both are alive, show it. The second read is made only if somebody will be
told: if `copy` is given, or inside audit() or no_copy(). So conversions that are not watched take
no longer.
"""

from bridge.c10.copy cimport reported_copy
from bridge.c10.reports cimport is_observed, report_copy
from bridge.c10.storage cimport (
    BORROWED,
    EXTERNAL,
    READONLY,
    RETAINED,
    Storage,
    flags_of,
    install,
    new_storage,
    set_flags,
)
from bridge.c10.tensor_impl cimport TensorImpl, new_impl, storage_flags


class FreshMemoryError(BufferError):
    """The memory is new at each call, so it cannot be shared."""


class ScatteredMemoryError(BufferError):
    """The memory cannot be shared as one tensor. `blocks`: where it is, as (address, bytes)."""

    # pyi: blocks: list[tuple[int, int]]
    def __init__(self, message: str, blocks: list[tuple[int, int]]) -> None:
        super().__init__(message)
        self.blocks = blocks


cpdef bint must_prove(object copy: bool | None) except -1:
    """Return whether somebody is told if the memory is shared (Note: Shared is proven)."""
    return copy is not None or is_observed()


cpdef bint is_same(TensorImpl first, TensorImpl second) except -1:
    """Return whether two imports of one object, both alive, have the same memory."""
    if first.c_numel == 0:
        return second.c_numel == 0
    return second.c_numel == first.c_numel \
        and first.data("from_dlpack") == second.data("from_dlpack")


cpdef bint was_copied(TensorImpl impl) except -1:
    """Return whether an import copied the memory, so that it is the bridge's own."""
    return not storage_flags(impl) & EXTERNAL


cpdef TensorImpl as_copy(
    TensorImpl impl, object x: object, object copy: bool | None, str reason=""
):
    """Return `impl`, whose memory `x` made for this call, reported as a copy.

    From now on it counts as memory of the bridge. Read-only memory is copied once more. `reason`:
    why it is a copy, if that is not all that is known.

    Raises FreshMemoryError: `copy` is False.
    """
    cdef Storage storage = impl.storage
    if not reason:
        reason = f"{type(x).__name__} returns new memory at each call"
    if impl.c_numel == 0:
        return impl
    if copy is False:
        raise FreshMemoryError(f"It cannot be shared: {reason}. Allow a copy with copy=None.")
    if flags_of(storage) & (READONLY | BORROWED) or not flags_of(storage) & EXTERNAL:
        return reported_copy(impl, reason, "from_dlpack")
    report_copy(impl.c_numel * impl.c_dtype.itemsize, reason)
    set_flags(storage, storage.flags & ~EXTERNAL)
    return impl


cpdef TensorImpl keeping(TensorImpl impl, object x: object):
    """Return a TensorImpl of the same memory that keeps `x` alive, too.

    For memory that lives as long as `x` does. A tensor of torch owns its memory itself.
    """
    cdef Storage storage = impl.storage
    cdef Storage out
    cdef TensorImpl kept
    if flags_of(storage) & (BORROWED | RETAINED) or not impl.c_dtype.c_is_pod:
        return impl
    out = new_storage(storage.device_type, storage.device_index)
    kept = new_impl(out, impl.c_dtype)
    kept.set_strided(impl.c_sizes, impl.c_strides(), impl.ndim, impl.c_numel)
    kept.offset = impl.offset
    install(out, KeptMemory(storage.ctx, x), storage.data, storage.c_dtype, storage.c_nbytes,
            storage.flags | EXTERNAL)
    return kept


cdef class KeptMemory:
    """The owner of memory, and the object that it was imported from."""

    def __init__(self, memory: Any, source: Any) -> None:
        self.memory = memory
        self.source = source
