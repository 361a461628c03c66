# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Operands whose memory overlaps although they are of several Storages.

Two views of one NumPy array that were imported apart are two Storages, and two torch storages, in
which torch does not look for overlap. For an operation that writes one of them they become views of
one.
"""

from libc.stdint cimport int64_t, uintptr_t

from bridge.at.storage_ops cimport overlap
from bridge.c10.storage cimport (
    READONLY,
    Storage,
    begin_of,
    external_ptr,
    flags_of,
    install,
    nbytes_of,
    new_storage,
    owner_of,
)
from bridge.c10.tensor_impl cimport TensorImpl, new_impl, numel_of, seen, storage_of
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.torch_export cimport has_negative_strides
from bridge.exchange.torch_storage cimport torch_storage
from bridge.exchange.torch_views cimport view_of


cdef bint _are_apart(Storage a, Storage b) except -1:
    """Return whether torch sees two storages where memory overlaps."""
    if a is b or not overlap(a, b):
        return False
    mine, theirs = torch_storage(a), torch_storage(b)
    return mine is None or theirs is None or mine._cdata != theirs._cdata


def joined(list impls: list[TensorImpl]) -> list[torch.Tensor | None] | None:
    """Return a torch.Tensor for each tensor, views of one torch storage; None for those apart.

    None in place of the list: nothing overlaps, or torch sees it. The tensors keep the memory.
    """
    cdef TensorImpl impl, whole
    cdef Storage storage, other, union
    cdef TypeMeta byte = as_type("uint8")
    cdef uintptr_t begin = <uintptr_t>-1, end = 0
    cdef list found = [False] * len(impls)
    cdef list owners = []
    cdef Py_ssize_t i, j
    cdef int64_t n
    for i in range(len(impls)):
        for j in range(i):
            if _are_apart(storage_of(<TensorImpl>impls[i]), storage_of(<TensorImpl>impls[j])):
                found[i] = found[j] = True
    if True not in found:
        return None
    # Each overlaps another one, but there may be more than one heap of them: those that are apart
    # from the first one stay as they are.
    storage = storage_of(<TensorImpl>impls[found.index(True)])
    begin, end = <uintptr_t>begin_of(storage), <uintptr_t>begin_of(storage) + nbytes_of(storage)
    changed = True
    while changed:
        changed = False
        for one in impls:
            other = storage_of(<TensorImpl>one)
            low, high = <uintptr_t>begin_of(other), <uintptr_t>begin_of(other) + nbytes_of(other)
            if low < end and begin < high and (low < begin or high > end):
                begin, end, changed = min(begin, low), max(end, high), True
    readonly = 0
    for one in impls:
        impl = seen(<TensorImpl>one)
        impl.data("Tensor")
        owners.append(owner_of(impl.storage))
        readonly |= flags_of(impl.storage) & READONLY
    union = new_storage(DL_CPU, 0)
    n = <int64_t>(end - begin)
    install(union, external_ptr(<void*>begin, owners, None), <char*>begin, byte, n, readonly)
    whole = new_impl(union, byte)
    whole.set_contiguous(&n, 1, n)
    base = view_of(whole)
    return [_of(base, <TensorImpl>one, begin, end) for one in impls]


cdef object _of(object base, TensorImpl impl, uintptr_t begin, uintptr_t end):
    """Return a tensor like `impl` over the memory of `base`; None if it is elsewhere."""
    cdef uintptr_t first
    impl = seen(impl)
    first = <uintptr_t>begin_of(impl.storage)
    if not (begin <= first < end) or numel_of(impl) == 0 or has_negative_strides(impl) \
            or impl.c_dtype.torch is None:
        return None
    return view_of(impl, base)
