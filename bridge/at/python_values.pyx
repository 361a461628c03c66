# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The elements of an at.Tensor as Python objects: item, tolist, equal, repr."""

from libc.stdint cimport (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)
from libc.string cimport memcpy

from bridge.at.conversion cimport as_source, require_pod
from bridge.c10.copy cimport contiguous_copy
from bridge.c10.device cimport host_accessible
from bridge.c10.storage cimport BORROWED, Elements, owner_of
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    device_type_of,
    is_undefined,
    seen,
    storage_flags,
)
from bridge.c10.type_meta cimport TypeMeta
from bridge.c10 cimport views
from bridge.dlpack.abi cimport DL_BOOL, DL_FLOAT, DL_INT, DL_UINT
from bridge.exchange.device_memory cimport to_device
from bridge.exchange.numpy cimport export_array
from bridge.exchange.torch_export cimport torch_computes, torch_operand

from bridge.c10.device import Device
from bridge.c10.errors import EnforceBufferError, EnforceNotMet, EnforceValueError

cdef enum:
    MAX_REPR = 1000     # elements that a repr lists
    NUMPY_NDIM = 32     # dimensions that every version of NumPy supports

# Types that NumPy converts to Python numbers; those of ml_dtypes are not.
cdef frozenset _PLAIN = frozenset((
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128"))


cdef union Number:
    int8_t int8
    int16_t int16
    int32_t int32
    int64_t int64
    uint8_t uint8
    uint16_t uint16
    uint32_t uint32
    uint64_t uint64
    float float32
    double float64
    char[16] bytes              # of the largest element


def item(TensorImpl impl) -> Any:
    """Return the only element as a Python number; see at.Tensor.item."""
    cdef char* at
    cdef Number number
    cdef TypeMeta dtype
    impl = seen(impl)
    _keep = impl.held(&at, "Tensor.item")
    dtype = impl.c_dtype
    if impl.c_numel != 1:
        raise EnforceValueError(
            f"item() requires exactly one element, and there are {impl.c_numel}. "
            "Use tolist().", "Tensor.item", condition="numel() == 1")
    if dtype.c_is_pod and host_accessible(device_type_of(impl)) and dtype.c_dlpack.lanes == 1:
        # Copied, as the address may be misaligned: that of bytes viewed as other elements is.
        if dtype.itemsize == 8:
            memcpy(&number, at, 8)
        elif dtype.itemsize == 4:
            memcpy(&number, at, 4)
        else:
            memcpy(&number, at, dtype.itemsize)
        code, bits = dtype.c_dlpack.code, dtype.c_dlpack.bits
        if code == DL_FLOAT and bits == 64:
            return number.float64
        if code == DL_FLOAT and bits == 32:
            return <double>number.float32
        if code == DL_BOOL:
            return number.uint8 != 0
        if code == DL_INT and bits >= 8:
            return number.int64 if bits == 64 else number.int32 if bits == 32 \
                else number.int16 if bits == 16 else number.int8
        if code == DL_UINT and bits >= 8:
            return number.uint64 if bits == 64 else number.uint32 if bits == 32 \
                else number.uint16 if bits == 16 else number.uint8
    listed = _listed(impl, "Tensor.item")
    while isinstance(listed, list):
        listed = listed[0]
    return listed


def tolist(TensorImpl impl) -> Any:
    """Return the elements as nested lists; see at.Tensor.tolist."""
    impl.data("Tensor.tolist")
    return _listed(impl, "Tensor.tolist")


cdef object _nested(list items, const int64_t* sizes, int ndim):
    """Return `items` in nested lists; without recursion, as there may be very many dimensions."""
    cdef int64_t i, size, n = 1
    cdef int d
    if ndim == 0:
        return items[0]
    for d in range(ndim):
        if sizes[d] == 0:
            ndim = d + 1        # these lists are empty
            break
    for d in range(ndim - 1):
        n *= sizes[d]
    for d in range(ndim - 1, 0, -1):
        size = sizes[d]
        items = [items[i * size:(i + 1) * size] for i in range(n)]
        n //= sizes[d - 1]
    return items


cdef TensorImpl _flat(TensorImpl impl, str caller):
    """Return the elements in one dimension: a view if the strides allow it, else a copy."""
    cdef int64_t n = impl.c_numel
    return views.view(
        impl if impl.flags & CONTIGUOUS else contiguous_copy(impl, caller), &n, 1, caller)


cdef object _listed(TensorImpl impl, str caller):
    cdef TypeMeta dtype
    impl = seen(impl)
    dtype = impl.c_dtype
    if not dtype.c_is_pod:
        if not impl.flags & CONTIGUOUS:
            require_pod(impl, caller)
        items = (<Elements?>owner_of(impl.storage)).items if impl.c_numel else []
        return _nested(items[impl.offset:impl.offset + impl.c_numel], impl.c_sizes, impl.ndim)
    if impl.c_numel == 0:
        return _nested([], impl.c_sizes, impl.ndim)     # of sizes that NumPy may not count
    if not host_accessible(device_type_of(impl)):
        impl = to_device(impl, Device("cpu"))
    if impl.ndim > NUMPY_NDIM:
        return _nested(_listed(_flat(impl, caller), caller), impl.c_sizes, impl.ndim)
    if dtype.name == "complex32" or dtype.name.endswith("_x2"):
        try:
            return torch_operand(impl).tolist()
        except RuntimeError as error:
            from bridge.exchange.refusal import reason_of

            raise EnforceBufferError(
                f"torch gives no numbers of {dtype}: {reason_of(error)}. Look at the bytes: "
                "x.view('uint8').", caller) from error
    if storage_flags(impl) & BORROWED:
        # A copy: the export of an array would retain the storage.
        impl = contiguous_copy(impl, caller)
    array = export_array(impl, caller)
    if array.dtype.name not in _PLAIN:
        import numpy
        with numpy.errstate(all="ignore"):
            array = array.astype("int64" if "int" in dtype.name else "float64")
    return array.tolist()


def equal(TensorImpl a, other: Any) -> bool:
    """Return whether `other` has the same sizes and elements; see at.Tensor.equal."""
    cdef TensorImpl b = as_source(other, a, "Tensor.equal")
    cdef int i
    a, b = seen(a), seen(b)
    a.data("Tensor.equal")
    b.data("Tensor.equal")
    if not a.c_dtype.c_is_pod or not b.c_dtype.c_is_pod:
        return a.c_dtype is b.c_dtype and a.sizes() == b.sizes() and _listed(
            a, "Tensor.equal") == _listed(b, "Tensor.equal")
    if a.ndim != b.ndim:
        return False
    for i in range(a.ndim):
        if a.c_sizes[i] != b.c_sizes[i]:
            return False
    if a.c_numel == 0:
        return True
    b = _where(b, a, other)
    if a.ndim > NUMPY_NDIM:     # of which torch compares up to 64
        a, b = _flat(a, "Tensor.equal"), _flat(b, "Tensor.equal")
    if not torch_computes(a.c_dtype) or not torch_computes(b.c_dtype):
        return _equal_in_numpy(a, b)
    try:
        mine, theirs = torch_operand(a), torch_operand(b)
    except BufferError:             # torch names the type but has no tensors of it
        return _equal_in_numpy(a, b)
    return bool((mine == theirs).all())


cdef TensorImpl _where(TensorImpl b, TensorImpl a, object other):
    """Return `b`, what `other` was imported as, where it can be compared with `a`.

    Numbers and lists are copied to the device of `a`. Raises EnforceNotMet: a tensor on another.
    """
    cdef bint here = host_accessible(device_type_of(b))
    if here and host_accessible(device_type_of(a)) or b.device() == a.device():
        return b
    if here and isinstance(other, (bool, int, float, complex, list, tuple)):
        return to_device(b, a.device())
    raise EnforceNotMet(
        f"The tensors are on {a.device()} and {b.device()}. Copy one to the other's device first, "
        f"as with x.to({str(a.device())!r}).", "Tensor.equal",
        condition="device() == other.device()")


cdef bint _equal_in_numpy(TensorImpl a, TensorImpl b) except -1:
    return bool((export_array(a, "Tensor.equal") == export_array(b, "Tensor.equal")).all())


def to_repr(TensorImpl impl) -> str:
    """Return the repr of an at.Tensor: its elements as NumPy prints them, type and device."""
    if is_undefined(impl):
        return "at.Tensor()"
    impl = seen(impl)
    try:
        impl.data("Tensor.__repr__")
    except EnforceNotMet as error:
        return (f"at.Tensor(<{error.message}>, sizes={impl.sizes().vec()}, "
                f"dtype={impl.c_dtype})")
    where = "" if impl.device() == "cpu" else f", device='{impl.device()}'"
    only = ", readonly" if impl.storage.readonly else ""
    return "at.Tensor(" + _shown(impl, f", dtype={impl.c_dtype}{where}{only})")


cdef str _shown(TensorImpl impl, str tail):
    """Return the elements of a tensor as text, its sizes if the text does not show them, `tail`."""
    if impl.c_numel != 0 and impl.c_dtype.c_is_pod and impl.ndim <= 32:  # as every NumPy has
        try:
            from bridge.at.printing import array_text

            return array_text(export_array(impl, "Tensor.__repr__"), tail)
        except (ImportError, TypeError, BufferError):
            pass                # on a device, or of a type that NumPy has not
        try:
            from bridge.at.printing import torch_text

            return torch_text(torch_operand(impl), tail)
        except (ImportError, TypeError, BufferError, RuntimeError):
            pass                # nor has torch
    values = "[]" if impl.c_numel == 0 else "..."
    if 0 < impl.c_numel <= MAX_REPR and impl.ndim <= 64:
        try:
            return repr(tolist(impl)) + tail
        except (ImportError, TypeError, BufferError):
            pass
    return f"{values}, sizes={impl.sizes().vec()}{tail}"
