# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Import from DLPack producers: by the C exchange table of their class, or by ``__dlpack__``.

Producers are not trusted: whatever they raise or do wrong becomes a BufferError that names them.
"""

from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport uintptr_t

from bridge.c10.python_api cimport PyErr_Occurred, raise_pending
from bridge.c10.reports cimport report_copy
from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.dlpack.abi cimport (
    DL_CPU,
    DL_CUDA,
    DL_CUDA_HOST,
    DL_CUDA_MANAGED,
    DL_ROCM,
    DL_UINT,
    DLPACK_MAJOR,
    DLPACK_MINOR,
    DLManagedTensorVersioned,
    DLPackExchangeAPI,
    DLTensor,
    has_streams,
)
from bridge.dlpack.capsule cimport ManagedTensor, call_deleter, own_versioned, consume_capsule
from bridge.exchange.dlpack_import cimport adopt, adopt_managed
from bridge.exchange.torch_api cimport torch_loaded
from bridge.exchange.torch_export cimport export_torch

from bridge.c10.reports import PRODUCER as _PRODUCER
from bridge.exchange.fresh_memory import FreshMemoryError

MAX_VERSION = (DLPACK_MAJOR, DLPACK_MINOR)  # pyi: tuple[int, int]
cdef tuple _STREAMED = (DL_CUDA, DL_ROCM, DL_CUDA_MANAGED)   # device types, see has_streams


cdef TensorImpl import_by_table(object x, object copy):
    """Return the TensorImpl of what the C exchange table of the class of `x` exports."""
    cdef DLPackExchangeAPI* api
    cdef DLPackExchangeAPI* older
    cdef DLManagedTensorVersioned* managed = NULL
    cdef ManagedTensor owner
    capsule = type(x).__dlpack_c_exchange_api__
    if not PyCapsule_IsValid(capsule, "dlpack_exchange_api"):
        raise BufferError(
            f"{type(x).__name__}.__dlpack_c_exchange_api__ is not a capsule of the name "
            "'dlpack_exchange_api'.")
    api = <DLPackExchangeAPI*>PyCapsule_GetPointer(capsule, "dlpack_exchange_api")
    while api.header.version.major != DLPACK_MAJOR:
        if api.header.version.major < DLPACK_MAJOR or api.header.prev_api == NULL:
            if hasattr(x, "__dlpack__"):
                return import_by_method(x, copy)
            raise BufferError(
                f"The DLPack exchange table of {type(x).__name__} is of major version "
                f"{api.header.version.major}; {DLPACK_MAJOR} is understood.")
        older = <DLPackExchangeAPI*>api.header.prev_api
        if (older.header.version.major, older.header.version.minor) \
                >= (api.header.version.major, api.header.version.minor):
            raise BufferError(
                f"The DLPack exchange table of {type(x).__name__} is broken: the older table that "
                f"it refers to has version {older.header.version.major}."
                f"{older.header.version.minor}, and it has {api.header.version.major}."
                f"{api.header.version.minor} itself.")
        api = older
    if api.managed_tensor_from_py_object_no_sync == NULL:
        raise BufferError(
            f"The DLPack exchange table of {type(x).__name__} is broken: a function that must "
            "exist is NULL.")
    if api.managed_tensor_from_py_object_no_sync(<void*>x, &managed) != 0:
        if PyErr_Occurred() == NULL:
            raise BufferError(
                f"The DLPack exchange table of {type(x).__name__} failed without an exception.")
        _translate(x)
    if PyErr_Occurred() != NULL:
        try:
            _translate(x)
        finally:
            call_deleter(managed, True)     # it returned one in spite of the exception
    owner = own_versioned(managed)
    owner.source = type(x)
    if has_streams(owner.tensor().device.device_type):
        _wait_for_table(api, owner.tensor(), x)
    return adopt_managed(owner, 0, copy)


cdef int _wait_for_table(DLPackExchangeAPI* api, DLTensor* tensor, object x) except -1:
    """Make our stream wait for the producer's, which the table does not do."""
    cdef void* stream = NULL            # the default one, if the table has no function for it
    cdef int status = 0
    if api.current_work_stream != NULL:
        status = api.current_work_stream(
            tensor.device.device_type, tensor.device.device_id, &stream)
    if PyErr_Occurred() != NULL:
        _translate(x)
    if status != 0:
        raise BufferError(
            f"The DLPack exchange table of {type(x).__name__} does not report its current "
            "stream, and failed without an exception.")
    from bridge.exchange.streams import wait_for_handle
    wait_for_handle(tensor.device.device_id, <uintptr_t>stream)
    return 0


cdef int _translate(object x) except -1:
    """Raise the pending exception of a producer as a BufferError."""
    try:
        raise_pending()
    except BufferError:
        raise
    except Exception as error:
        from bridge.exchange.refusal import reason_of
        raise BufferError(
            f"{type(x).__name__} does not export its memory: {reason_of(error)}") from error


def import_by_dlpack(x: Any, *, readonly: bool = False, on_host: bool = False) -> TensorImpl:
    """Return the TensorImpl of what ``x.__dlpack__`` returns, for adapters.

    `readonly`: `x` is immutable, whatever the flag of its DLPack tensor. `on_host`: it is known to
    be in host memory, so `__dlpack_device__` is not called.
    """
    return import_by_method(x, None, READONLY if readonly else 0, on_host)


cdef TensorImpl import_by_method(object x, object copy, int flags=0, bint on_host=False):
    """Return the TensorImpl of what ``x.__dlpack__`` returns; `flags` are added to its Storage."""
    cdef ManagedTensor managed
    cdef TensorImpl impl
    where = None if on_host else _device_of(x)
    arguments = {}
    if not on_host and where[0] in _STREAMED:
        from bridge.exchange.streams import current_stream, wait_for_producer
        try:
            arguments["stream"] = current_stream(where[1], where[0])
        except Exception as error:
            raise BufferError(
                f"{type(x).__name__} reports CUDA device {where[1]}, which torch "
                f"does not know: {error}") from error
    try:
        capsule, ordered = _call_dlpack(x, arguments)
    except (BufferError, TypeError):
        raise
    except Exception as error:
        _refuse(x, "__dlpack__", error)
    _require_capsule(capsule, x, "__dlpack__")
    try:
        managed = consume_capsule(capsule)
    except BaseException:
        # Drop the capsule here, not while the error propagates: the producer's destructor may
        # run Python.
        capsule = None
        raise
    capsule = None
    managed.source = type(x)
    if not on_host:
        seen = (managed.tensor().device.device_type, managed.tensor().device.device_id)
        if where != seen and not (where[0] == DL_CUDA_HOST and seen == (DL_CPU, 0)
                                  and _is_page_locked(managed)):
            managed = None
            raise BufferError(
                f"{type(x).__name__}.__dlpack_device__ is {where}, but the capsule is on {seen}.")
    if not ordered:
        # It did not take a stream, so it is assumed to work on the default one.
        wait_for_producer(where[1], 0 if where[0] == DL_ROCM else 1, where[0])
    impl = adopt_managed(managed, flags, copy)
    if managed.copied():
        if copy is False and impl.c_numel:
            raise FreshMemoryError(
                f"{type(x).__name__}.__dlpack__ returned a copy, as its flag says. Allow it with "
                "copy=None.")
        report_copy(impl.c_numel * impl.c_dtype.itemsize, _PRODUCER)
    return impl


cdef int _refuse(object x, str method, object error) except -1:
    """Raise the BufferError of a producer whose method raised `error`."""
    from bridge.exchange.refusal import reason_of
    raise BufferError(
        f"{type(x).__name__}.{method} does not export its memory: {type(error).__name__}: "
        f"{reason_of(error)}") from error


cdef int _require_capsule(object capsule, object x, str method) except -1:
    if not PyCapsule_CheckExact(capsule):
        raise BufferError(
            f"{type(x).__name__}.{method} returned {type(capsule).__name__}, not a capsule.")
    return 0


cdef bint _is_page_locked(ManagedTensor managed) except -1:
    """Return whether the memory of a capsule on the CPU is page-locked.

    For such memory, torch's `__dlpack_device__` is CUDAHost and its capsule is on the CPU. torch is
    asked about the first byte: torch may need a copy of the tensor, which would read memory whose
    device is not known yet.
    """
    cdef DLTensor byte = managed.tensor()[0]
    if byte.data == NULL or not torch_loaded():
        return False
    byte.ndim = 0
    byte.dtype.code, byte.dtype.bits, byte.dtype.lanes = DL_UINT, 8, 1
    return export_torch(adopt(&byte, managed, 0, False, False), None, True).is_pinned()


def _call_dlpack(x, arguments):
    """Return a capsule, versioned if possible, and whether `x` accepted all of `arguments`."""
    attempts = [{"max_version": MAX_VERSION, **arguments}, {}]
    if arguments:
        attempts.insert(1, arguments)
    first = None
    for given in attempts:
        try:
            return x.__dlpack__(**given), given.keys() >= arguments.keys()
        except TypeError as error:
            first = first if first is not None else error
            # Retry only after an error about the signature: a subclass of TypeError is not one, and
            # some producers deprecate calls without max_version.
            if type(error) is not TypeError or "argument" not in str(error):
                break
    from bridge.exchange.refusal import reason_of
    raise BufferError(
        f"{type(x).__name__}.__dlpack__ does not export its memory: {reason_of(first)}") from first


def _device_of(x):
    try:
        where = x.__dlpack_device__()
    except AttributeError:
        raise BufferError(
            f"{type(x).__name__} has __dlpack__ but no __dlpack_device__, so it is not a "
            "DLPack producer.") from None
    except BufferError:
        raise
    except Exception as error:
        from bridge.exchange.refusal import reason_of
        raise BufferError(
            f"{type(x).__name__}.__dlpack_device__ does not report the device: "
            f"{reason_of(error)}") from error
    try:
        kind, index = where
        return int(kind), int(index)
    except (TypeError, ValueError):
        raise BufferError(
            f"{type(x).__name__}.__dlpack_device__ returned {where!r}, not (device type, index)."
        ) from None


cdef TensorImpl import_capsule_method(object x, object copy):
    """Return the TensorImpl of the capsule that ``x.to_dlpack()`` returns."""
    cdef ManagedTensor managed
    try:
        capsule = x.to_dlpack()
    except (BufferError, TypeError):
        raise
    except Exception as error:
        _refuse(x, "to_dlpack()", error)
    _require_capsule(capsule, x, "to_dlpack()")
    managed = consume_capsule(capsule)
    managed.source = type(x)
    return adopt_managed(managed, 0, copy)
