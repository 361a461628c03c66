# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Writes to the elements of an at.Tensor: copy_, fill_, zero_, and assignment to a view."""

from libc.string cimport memset

from bridge.at.conversion cimport as_source, converted, require_pod, scalar
from bridge.c10.copy cimport copy_elements
from bridge.c10.device cimport host_accessible
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    allocated,
    device_type_of,
    dtype_of,
    numel_of,
    origin_of,
    seen,
)
from bridge.c10.type_meta cimport TypeMeta
from bridge.c10 cimport views
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.device_memory cimport to_device
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.torch_export cimport (
    as_bits,
    each_once,
    forward_operand,
    torch_computes,
    torch_operand,
)

from bridge.c10.errors import EnforceValueError


cdef int copy_into(TensorImpl dst, object value, str caller) except -1:
    """Copy `value`, anything that `as_source` takes, into `dst`, converted and broadcast."""
    dst.require_defined(caller)
    return _copy_elements(dst, as_source(value, dst, caller), caller)


cdef int _copy_elements(TensorImpl dst, TensorImpl src, str caller) except -1:
    dst, src = seen(dst), seen(src)
    require_pod(dst, caller)
    require_pod(src, caller)
    dst.writable(caller)
    src.data(caller)
    if src.c_dtype is not dst.c_dtype:
        src = converted(src, dst.c_dtype, caller)
    if src.ndim == 0 and not host_accessible(device_type_of(dst)) \
            and host_accessible(device_type_of(src)) and torch_computes(dst.c_dtype):
        # Passed by value: the host would wait for a copy to the device.
        if dst.c_numel:
            forward_operand(each_once(dst)).fill_(torch_operand(src))
        return 0
    if device_type_of(src) != device_type_of(dst) and src.c_numel != dst.c_numel:
        src = to_device(src, dst.device())
    # Extra leading dimensions of size one are allowed, as in assignments of NumPy.
    while src.ndim > dst.ndim and src.c_sizes[0] == 1:
        src = views.select(src, 0, 0, caller)
    _require_broadcastable(src, dst, caller)
    src = views.expand(src, dst.c_sizes, dst.ndim, caller)
    return copy_elements(dst, src, caller)


cdef int _require_broadcastable(TensorImpl src, TensorImpl dst, str caller) except -1:
    """Raise EnforceValueError unless `src` broadcasts to the sizes of `dst`."""
    cdef int lead = dst.ndim - src.ndim
    cdef bint fits = lead >= 0
    cdef int i
    for i in range(src.ndim if fits else 0):
        if src.c_sizes[i] != 1 and src.c_sizes[i] != dst.c_sizes[lead + i]:
            fits = False
    if not fits:
        raise EnforceValueError(
            f"Elements of sizes {src.sizes().vec()} do not fit into sizes {dst.sizes().vec()}: "
            "each size has to be the same, or one.", caller)
    return 0


cdef int fill(TensorImpl dst, object value) except -1:
    """Set every element to `value`; see at.Tensor.fill_."""
    cdef TensorImpl src
    dst.require_defined("Tensor.fill_")
    if isinstance(value, (bool, int, float, complex)):
        src = scalar(value, <TypeMeta>dtype_of(dst), "Tensor.fill_")
    else:
        src = seen(as_source(value, dst, "Tensor.fill_"))
        if src.c_numel != 1 or src.ndim != 0:
            raise EnforceValueError(
                f"fill_ takes a number or a 0-d tensor, not sizes {src.sizes().vec()}. Use "
                "copy_.", "Tensor.fill_", condition="value.dim() == 0")
    return _copy_elements(dst, src, "Tensor.fill_")


cdef int zero(TensorImpl dst) except -1:
    """Set every element to zero; see at.Tensor.zero_."""
    cdef char* to
    cdef TensorImpl src
    dst = seen(dst)
    _keep = dst.held(&to, "Tensor.zero_")
    require_pod(dst, "Tensor.zero_")
    dst.writable("Tensor.zero_")
    if dst.c_numel == 0:
        return 0
    if host_accessible(device_type_of(dst)) and dst.flags & CONTIGUOUS:
        # In every POD type, zero has all bits clear.
        memset(to, 0, dst.c_numel * dst.c_dtype.itemsize)
        return 0
    if not host_accessible(device_type_of(dst)):
        dst = each_once(dst)
        forward_operand(dst if torch_computes(dst.c_dtype) else as_bits(dst)).zero_()
        return 0
    src = allocated(dst.c_sizes, 0, dst.c_dtype, DL_CPU, 0, "Tensor.zero_")
    memset(src.data("Tensor.zero_"), 0, dst.c_dtype.itemsize)
    src = views.expand(src, dst.c_sizes, dst.ndim, "Tensor.zero_")
    return copy_elements(dst, src, "Tensor.zero_")


cpdef object write_back(TensorImpl impl, tensor: torch.Tensor):  # pyi: None
    """Copy `tensor`, which torch changed, into `impl` if it does not share the memory of `impl`."""
    cdef TensorImpl back
    if numel_of(impl) == 0 or origin_of(impl) is tensor:
        return
    if tensor.data_ptr() == <size_t>impl.data("Tensor"):
        return
    back = import_tensor(tensor)
    impl = seen(impl)
    if back.c_dtype is impl.c_dtype:
        copy_elements(impl, views.expand(back, impl.c_sizes, impl.ndim, "Tensor"), "Tensor")
