# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""One tensor to a library: the conversions that `bridge` calls, for a tensor and for each leaf."""

import threading
from functools import partial

from bridge.at.tensor cimport Tensor as AtTensor
from bridge.at.tensor cimport wrap
from bridge.c10.copy cimport reported_copy
from bridge.c10.reports cimport report_copy
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, is_undefined
from bridge.exchange.conversion cimport export_source, remaining_copy
from bridge.exchange.fresh_memory cimport is_same, must_prove
from bridge.exchange.import_tensor cimport import_tensor
from bridge.exchange.torch_export cimport export_torch, has_negative_strides
from bridge.wrapper cimport Wrapper

from bridge.c10.reports import ASKED as _ASKED
from bridge.exchange.fresh_memory import FreshMemoryError
from bridge.exchange.refusal import reason_of
from bridge.exchange.registry import adapter_named, exporting_names, missing_library, on_change

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
            export = partial(_export_to, adapter)
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
        impl = reported_copy(
            impl, f"Caffe2-style tensors are contiguous, and it has strides {impl.strides().vec()}",
            "convert", copy)
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


# Export by the exporters of `bridge.exchange.registry`.

# Exporters may call others, of the same library for parts of a tensor.
_MAX_NESTED = 32


class _Running(threading.local):
    """The exporters that run in this thread, the outermost first, each with its tensor."""

    def __init__(self):
        self.exports = []


_running = _Running()


def _export_to(adapter, x, copy):
    """Return the library's object of the memory of `x`; see bridge.convert.

    An object of the library itself is returned unchanged. Raises BufferError: the library does not
    take it, or takes a copy only and `copy` is False.
    """
    cdef TensorImpl impl
    if copy is not True and adapter.includes(x):
        return x
    impl = export_source(x, copy)
    copy = remaining_copy(x, impl, copy)
    if copy is True:
        impl = reported_copy(impl, _ASKED, "convert")
    _refuse_endless(adapter, impl)
    _running.exports.append((adapter, impl))
    try:
        exported = adapter.exporter(wrap(impl))
    except (BufferError, MemoryError):
        raise
    except ImportError as error:
        raise missing_library(adapter.name, error) from error
    except Exception as error:
        reason = reason_of(error)
        raise BufferError(
            f"{adapter.name} does not take a tensor of {impl.dtype()} on {impl.device()}: "
            f"{type(error).__name__}: {reason}. Convert it first, as with "
            "bridge.asarray(x, dtype='float32')."
        ) from error
    finally:
        _running.exports.pop()
    if copy is not True and must_prove(copy) and not _is_shared(impl, exported):
        _report(adapter.name, impl, copy)
    return exported


cdef int _refuse_endless(object adapter, TensorImpl impl) except -1:
    """Raise BufferError if the exporter is at work on `impl`, or too many exporters are at work."""
    exports = _running.exports
    again = (adapter, impl) in exports
    if not again and len(exports) < _MAX_NESTED:
        return 0
    names = " and ".join(dict.fromkeys(other.name for other, _ in exports))
    raise BufferError(
        f"The exporter of {names} called convert(x, {adapter.name!r}) for the tensor that it was "
        f"given{'' if again else f', {_MAX_NESTED} times in a row'}. An exporter makes the "
        "library's object itself."
    )


cdef bint _is_shared(TensorImpl impl, object exported) except -1:
    """Return whether the library's object has the memory of `impl`; True if it has no door."""
    try:
        return impl.c_numel == 0 or is_same(impl, import_tensor(exported, None, False))
    except BufferError:
        return False
    except TypeError:
        return True


cdef int _report(str name, TensorImpl impl, object copy) except -1:
    reason = f"{name} copied it: it cannot share this memory"
    if copy is False:
        raise FreshMemoryError(
            f"{name} cannot share memory of {impl.dtype()} with strides {list(impl.strides())}"
            f"{', which is read-only' if impl.get_storage().readonly else ''}. Allow a copy with "
            "copy=None."
        )
    return report_copy(impl.c_numel * impl.c_dtype.itemsize, reason)
