# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""One tensor to a library: the conversions that `bridge` calls, for a tensor and for each leaf."""

from bridge.at.tensor cimport Tensor as AtTensor
from bridge.at.tensor cimport wrap
from bridge.c10.copy cimport reported_copy
from bridge.c10.reports cimport report_copy
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, is_undefined
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.torch_export cimport export_torch, has_negative_strides
from bridge.wrapper cimport Wrapper

from bridge.c10.reports import ASKED as _ASKED
from bridge.exchange.registry import adapter_named, exporting_names, on_change

# The libraries besides those of bridge.exchange.registry.
cdef tuple BUILT_IN = ("torch", "numpy", "at", "caffe2")

# name -> function(x, copy) of an exporter
cdef dict _exports = {}
on_change(_exports.clear)


cdef object exporter_of(str name):
    """Return ``function(x, copy)`` that converts to a registered library.

    Raises ValueError: no library has the name. ImportError: it is not installed.
    """
    export = _exports.get(name)
    if export is None:
        adapter = adapter_named(name)
        if adapter is None or adapter.exporter is None:
            raise ValueError(
                f"{name!r} is not a library that the bridge converts to; it converts to "
                f"{', '.join((*BUILT_IN, *exporting_names()))}.")
        export = adapter.exporter
        if not adapter.export_takes_copy:
            from functools import partial
            from bridge.library_export import export_to
            export = partial(export_to, adapter)
        _exports[name] = export
        if adapter_named(name) is not adapter:      # another thread has just registered the name
            _exports.pop(name, None)
    return export


cdef object readonly_torch_of(TensorImpl impl, object copy):
    """Return a torch.Tensor of read-only memory that refuses to be written."""
    if has_negative_strides(impl):
        return export_torch(impl, copy, False)      # a copy, which may be written
    from bridge.readonly_torch import guarded
    return guarded(export_torch(impl, False, True))


cdef object copied_array(object array):
    report_copy(array.nbytes, _ASKED)
    return array.copy()


cdef object wrapper_of(object x, bint caffe2, object copy):
    """Return an at.Tensor, or a caffe2.Tensor, of the memory of `x`; see bridge.convert."""
    from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor
    cdef TensorImpl impl
    if isinstance(x, Wrapper):
        impl = (<Wrapper>x).impl
        if copy is not True and (not caffe2 or is_undefined(impl) or impl.flags & CONTIGUOUS):
            cls = Caffe2Tensor if caffe2 else AtTensor
            return x if isinstance(x, cls) else cls(x)
        if copy is True and caffe2 and not impl.c_dtype.c_is_pod:
            impl.require_defined("convert")
            report_copy(impl.c_numel * impl.c_dtype.itemsize, _ASKED)
            return Caffe2Tensor(x).Clone()
    impl = import_tensor(x, None, copy)
    if not caffe2:
        return wrap(impl)
    if not impl.flags & CONTIGUOUS:
        if copy is False:
            raise BufferError(
                "Caffe2-style tensors are contiguous, and this memory has strides "
                f"{impl.strides().vec()}. Allow a copy with copy=None.")
        impl = reported_copy(impl, "Caffe2-style tensors are contiguous", "convert")
    return Caffe2Tensor._wrap(impl)


def convert_one(
    x: Any, str name, copy: bool | None, bint writable=False, bint readonly=False
) -> Any:
    """Return `x`, one tensor, as the library `name`; see bridge.convert."""
    if name == "torch":
        return torch_of(x, copy, writable, readonly)
    if name == "numpy":
        return numpy_of(x, copy)
    if name == "at" or name == "caffe2":
        return wrapper_of(x, name == "caffe2", copy)
    return exporter_of(name)(x, copy)
