# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""What a torch.Tensor is at this moment, by torch's word, and whether it is still what it was.

The latter is read where torch has it.

An imported tensor goes out again while it is still that tensor, so each export asks what it is now.
torch answers by a description (90 ns) and `is_neg` (45 ns, as it releases the GIL), and by no call
that takes less than 25 ns, where `to_torch` without a look takes 29. So the fields are read in
torch's C++ objects, in 4 ns. When that took 8, calls compared with it so (builds in turns, CPU,
torch 2.13):

    x.to_torch() of an imported tensor      161 -> 44 ns
    FetchTorch                              205 -> 70 ns
    from_dlpack(torch)                      258 -> 206 ns
    to_torch of a view, the first time      1.63 -> 1.5 of what ``as_strided`` takes

torch does not promise where they are. They are looked for when torch is loaded, in tensors made for
that, by the values that torch says they have, within the bytes that every torch since 2.6 has. If
one is not found in exactly one place, nothing is read, and torch is called. What is read only ever
says "unchanged": else torch is called, too. So it is for every tensor that is not a plain one of
the CPU by its dispatch keys (lazy bits, fake, sparse, inference mode, transforms), for those of
more than five dimensions, and without the GIL, where another thread may be changing the fields.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint16_t, uintptr_t

from bridge.c10.device cimport Device, as_device
from bridge.c10.dims cimport Dims, new_dims
from bridge.c10.python_api cimport FREE_THREADED, owned, take_pending
from bridge.c10.type_meta cimport TypeMeta, as_type
from bridge.dlpack.abi cimport DL_CPU, DLTensor
from bridge.exchange.torch_api cimport is_plain, torch, torch_c, torch_type, without_modes

from bridge.exchange.torch_api import on_torch_loaded

cdef enum:
    IMPL_BYTES = 176        # of c10::TensorImpl; its last field, the dispatch keys, is in them,
    OLDER_BYTES = 184       # or in these (before torch 2.10)
    STORAGE_BYTES = 64      # of c10::StorageImpl

cdef tuple _NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
    "complex64", "complex128")


def is_known() -> bool:
    """Return whether the fields were found; False before torch is loaded."""
    return places.type != NULL


def _look():
    """Find the fields; `places.type` is set if all of them were found."""
    if FREE_THREADED:
        return
    with without_modes(), torch.inference_mode(False):
        try:
            if _found():
                places.type = torch_type()
        except (AttributeError, RuntimeError, TypeError):
            pass                        # a torch without one of these names


cdef bint _found() except -1:
    memory = bytearray(4096)        # so that the address is in one place of the StorageImpl
    counts = (3989, 4001, 4093)
    cases = [((3, 5, 7, 2, 11), (1, 29, 4, 31, 6), 13), ((17, 9), (2, 37), 19), ((), (), 23)]
    tensors = [
        torch.frombuffer(memory, dtype=torch.uint8, count=count).as_strided(*case)
        for count, case in zip(counts, cases, strict=True)]
    impls = [tensor._cdata for tensor in tensors]
    storages = [tensor.untyped_storage() for tensor in tensors]
    places.plain = torch._C._dispatch_keys(tensors[0]).raw_repr()
    places.impl = _place(
        [id(tensor) for tensor in tensors], impls, torch.Tensor.__basicsize__)
    keys = [places.plain] * 3
    places.keys = _place(impls, keys, IMPL_BYTES)
    if places.keys < 0:
        places.keys = _place(impls, keys, OLDER_BYTES)
    n = places.keys     # the other fields come before
    places.storage = _place(impls, [storage._cdata for storage in storages], n)
    places.ndim = _place(impls, [len(sizes) for sizes, _, _ in cases], n)
    places.offset = _place(impls, [offset for _, _, offset in cases], n)
    places.sizes = _row(impls[:2], [sizes for sizes, _, _ in cases[:2]], n)
    places.strides = _row(impls[:2], [strides for _, strides, _ in cases[:2]], n)
    places.data = _place(
        [storage._cdata for storage in storages], [storage.data_ptr() for storage in storages],
        STORAGE_BYTES)
    places.nbytes = _place([storage._cdata for storage in storages], list(counts), STORAGE_BYTES)
    return min(
        places.impl, places.storage, places.keys, places.ndim, places.offset, places.sizes,
        places.strides, places.data, places.nbytes) >= 0 and _types_found(n)


cdef Py_ssize_t _place(list objects, list values, Py_ssize_t nbytes) except -2:
    """Return where each of the objects, given by address, has its value; -1: not in one place."""
    cdef uintptr_t address, value
    found = list(range(0, nbytes, 8))
    for address, value in zip(objects, values, strict=True):
        found = [n for n in found if <uintptr_t>word_at(<char*>address + <Py_ssize_t>n) == value]
    return found[0] if len(found) == 1 else -1


cdef Py_ssize_t _row(list objects, list rows, Py_ssize_t nbytes) except -2:
    """Do as `_place`, for the first of values that lie one after the other."""
    first = _place(objects, [row[0] for row in rows], nbytes)
    second = _place(objects, [row[1] for row in rows], nbytes)
    return first if first == second - 8 else -1


cdef bint _types_found(Py_ssize_t nbytes) except -1:
    """Find where torch has the number of the element type, and the number of each type."""
    cdef TypeMeta meta
    cdef int number
    dtypes = [getattr(torch, name) for name in _NAMES]
    first, second = (
        [torch.empty(0, dtype=dtype, device="cpu") for dtype in dtypes] for _ in range(2))
    found = []
    for place in range(0, nbytes, 2):
        numbers = [_number(tensor._cdata + place) for tensor in first]
        if len(set(numbers)) == len(dtypes) \
                and numbers == [_number(tensor._cdata + place) for tensor in second]:
            found.append((place, numbers))
    if len(found) != 1 or max(found[0][1]) >= TYPES:
        return False
    places.dtype, numbers = found[0]
    for number, dtype in zip(numbers, dtypes, strict=True):
        meta = as_type(dtype)
        places.types[number] = <PyObject*>meta
    return True


cdef uint16_t _number(uintptr_t place):
    return (<uint16_t*>place)[0]


on_torch_loaded(_look)


cdef object described(object tensor, DLTensor* description):
    """Fill `description`, which borrows from a torch.Tensor; return what keeps sizes and strides.

    That is the tensor, or what was made for it before torch 2.10, which has no exchange table.
    None: the tensor has no memory.
    """
    if torch_c.dlpack == NULL:
        if is_plain(tensor):
            return _by_attributes(tensor, description)
        with torch._C.DisableTorchFunctionSubclass():
            return _by_attributes(tensor, description)
    if torch_c.dlpack.dltensor_from_py_object_no_sync(<PyObject*>tensor, description) == 0:
        return tensor
    take_pending()
    return None


cdef Dims _by_attributes(object tensor, DLTensor* out):
    """Do as `described`, by what Python sees of the tensor."""
    cdef TypeMeta dtype
    cdef Device device
    cdef Dims kept
    cdef int i
    try:
        # A tensor without a storage has no address, a nested one no sizes.
        address = tensor.data_ptr()
        sizes, strides = tensor.shape, tensor.stride()
        dtype = as_type(tensor.dtype)
        device = None if tensor.is_cpu else as_device(tensor.device)
    except (RuntimeError, TypeError, ValueError):
        return None         # or a type or device that DLPack lacks
    out.ndim = len(sizes)
    kept = new_dims(2 * out.ndim)
    out.data = <void*><uintptr_t>address
    out.device.device_type = DL_CPU if device is None else device.c_type
    out.device.device_id = 0 if device is None else max(device.c_index, 0)
    out.dtype = dtype.c_dlpack
    out.shape, out.strides, out.byte_offset = kept.data, kept.data + out.ndim, 0
    for i in range(out.ndim):
        out.shape[i], out.strides[i] = sizes[i], strides[i]
    return kept


cdef bint has_lazy_bit(object tensor, bint is_complex) except -1:
    """Return whether the memory of a torch.Tensor holds other values than it shows.

    `is_complex`: its elements are complex numbers; only these can be conjugates.
    """
    cdef PyObject* t = <PyObject*>tensor
    if is_plain(tensor) and torch_c.is_neg != NULL and torch_c.is_conj != NULL:
        return owned(torch_c.is_neg(t, NULL)) or (is_complex and owned(torch_c.is_conj(t, NULL)))
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.is_neg() or tensor.is_conj()
