# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Inputs and outputs of an operator while it runs."""

cimport cython

from bridge.c10 cimport allocation, resizing
from bridge.c10.dims cimport Dims, parse_dims
from bridge.c10.device cimport Device, as_device
from bridge.c10.python_api cimport (
    claim,
    find_in,
    let_go,
    lock_object,
    set_word,
    unlock_object,
    word,
)
from bridge.c10.storage cimport READONLY, new_storage
from bridge.c10.tensor_impl cimport (
    TensorImpl,
    allocated,
    device_index_of,
    device_type_of,
    has_sizes,
    is_undefined,
    new_impl,
    storage_flags,
)
from bridge.c10.type_meta cimport TypeMeta, undefined_type
from bridge.caffe2.blobs.core cimport BlobCore, hold_tensor, tensor_of
from bridge.caffe2.blobs.backup cimport back_up, restore_all
from bridge.exchange.torch_settings cimport is_neutral
from bridge.caffe2.tensor.tensor cimport Tensor, wrap
from bridge.dlpack.abi cimport DL_CPU

from bridge.c10.errors import EnforceIndexError, EnforceNotMet, EnforceTypeError
from bridge.c10.options import as_options
from bridge.c10 import float32 as _float32
from bridge.caffe2.base.wrapped_errors import ReturnedFalseError
from bridge.caffe2.base.global_init import on_flag
from bridge.caffe2.execution.blob_table import BlobTable, find_or_create, input_in
from bridge.exchange.torch_settings import neutral
from bridge.exchange.device_memory import current_index

cdef TypeMeta float32_type = _float32

cdef extern from *:
    """
    #define BRIDGE_BACKUPS(operator) BRIDGE_LOAD(operator, _backups)
    """
    # Return `operator._backups`, which another thread that runs the operator may set.
    list backups_of "BRIDGE_BACKUPS"(OperatorCore operator)


cdef extern from "<fenv.h>":
    int FE_DIVBYZERO, FE_INVALID, FE_OVERFLOW
    int feclearexcept(int) nogil
    int fetestexcept(int) nogil


cdef class DefinitionCore:
    """The fields of a definition that a run needs; the base of `Definition`."""

    # pyi: inputs: tuple[str, ...]
    # pyi: device: Device
    def _place(self, device: Any) -> None:
        """Set the device that the operator runs on."""
        cdef Device on = as_device(device)
        self.device = on
        self.device_type = on.c_type
        self.device_index = current_index(on)

    @cython.critical_section
    def _assign(self, cls: Any, long generation, bint plain, bint writes_last) -> None:
        """Set the class that runs it, and the attributes of the class that a run needs."""
        _former = self.cls      # released on return
        self.cls = cls
        self.plain = plain
        set_word(&self.writes_last, writes_last)
        self.generation = generation


cdef class OperatorCore:
    """The inputs and outputs of an operator; the base of `Operator`, which has `_definition_of`."""

    def __init__(self, definition: Any, workspace: BlobTable | None = None) -> None:
        cdef DefinitionCore own
        cdef dict blobs
        if not isinstance(definition, DefinitionCore) \
                or (<DefinitionCore>definition).cls is not type(self):
            definition = self._definition_of(definition)
        own = <DefinitionCore>definition
        if workspace is None:
            workspace = self._workspace     # of an operator that is initialized again
        if not isinstance(workspace, BlobTable):
            raise EnforceTypeError(
                "An operator is created with the workspace of its blobs, such as "
                f"Workspace.current, not {type(workspace).__name__}.", "Operator")
        if self._backups is not None:
            raise EnforceNotMet(
                f"{type(self).__name__} is running: it cannot be made anew now.",
                "Operator.__init__")
        blobs = workspace._blobs
        self._inputs = tuple(
            [find_in(blobs, name) or input_in(workspace, name) for name in own.inputs])
        self._outputs = tuple(
            [find_in(blobs, name) or find_or_create(workspace, name) for name in own.outputs])
        self._definition = own
        self._workspace = workspace

    cdef BlobCore input_blob(self, object i, str caller):
        cdef tuple blobs = self._inputs
        return <BlobCore>blobs[_place(self, blobs, i, "input", caller)]

    cdef BlobCore output_blob(self, object i, str caller):
        """Return the blob of output `i`, after a backup of its value if the operator is running."""
        cdef tuple blobs = self._outputs
        cdef Py_ssize_t index = _place(self, blobs, i, "output", caller)
        cdef BlobCore blob = <BlobCore>blobs[index]
        cdef list backups = backups_of(self)
        if backups is not None and backups[index] is None:
            backups[index] = back_up(blob, word(&self._definition.writes_last))
        return blob

    def Input(self, i: int, T: Any = None) -> Any:
        """Return the tensor of input `i`, the blob's own: sizes, type and elements are shared.

        With a class `T`, return the object of that class in the blob, as `Blob.Get` does.

        Raises EnforceNotMet: there is no input `i` (also an IndexError), or it holds something
        else; the error names the blob. Follows OperatorBase::Input, caffe2/core/operator.h.
        """
        cdef BlobCore blob = self.input_blob(i, "Operator.Input")
        if T is not None:
            return _object_in(self, blob, i, T)
        tensor = tensor_of(blob)
        if tensor is None:
            _refuse_input(self, blob, i)
        return tensor

    def InputBlob(self, i: int) -> Blob:
        """Return the Blob of input `i`. Raises EnforceNotMet, also an IndexError: no such input."""
        return self.input_blob(i, "Operator.InputBlob")

    def InputSize(self) -> int:
        """Return the number of inputs."""
        return 0 if self._inputs is None else len(self._inputs)

    def OutputSize(self) -> int:
        """Return the number of outputs."""
        return 0 if self._outputs is None else len(self._outputs)

    def Inputs(self) -> list[Blob]:
        """Return a list of the Blobs of the inputs."""
        return list(self._inputs or ())

    def Outputs(self) -> list[Blob]:
        """Return a list of the Blobs of the outputs."""
        return [self.output_blob(i, "Operator.Outputs") for i in range(self.OutputSize())]

    def OutputBlob(self, i: int) -> Blob:
        """Return the Blob of output `i`, for outputs other than tensors.

        Raises EnforceNotMet, also an IndexError: there is no output `i`.
        """
        return self.output_blob(i, "Operator.OutputBlob")

    def IsInputOutputAlias(self, i: int, j: int) -> bool:
        """Return whether input `i` and output `j` are the same blob.

        Two blobs that share a tensor or a storage are not the same blob.
        """
        return self.input_blob(i, "Operator.IsInputOutputAlias") is \
            self.output_blob(j, "Operator.IsInputOutputAlias")

    def Output(
        self,
        i: int,
        dims: Any = None,
        options: Any = None,
        *,
        dtype: Any = None,
        device: Any = None,
    ) -> Tensor:
        """Return the tensor of output `i`, the blob's own.

        With `dims`, it has these sizes and is allocated, with the type and device of `options`;
        the defaults are float32 and the operator's device. The blob's own buffer is reused if it is
        on that device and large enough, and not read-only. Elements are not initialized.

        Without `dims` (old style), it is the tensor as it is, or an empty one if the blob has none.
        It may not be allocated: the operator calls `Resize` and `mutable_data(T)`.

        Raises EnforceNotMet: there is no output `i` (also an IndexError), or negative sizes.
        MemoryError: the allocation fails. Follows OperatorBase::Output and BlobGetMutableTensor,
        caffe2/core/operator.h and blob.h, PyTorch 1.8.1.
        """
        cdef BlobCore blob = self.output_blob(i, "Operator.Output")
        if dims is None:
            if options is not None or dtype is not None or device is not None:
                raise EnforceTypeError(
                    "Options require sizes: Output(i, dims, options).",
                    "Operator.Output", condition="dims is not None")
            return _plain(self, blob)
        return _sized(self, blob, dims, options, dtype, device, "Operator.Output")

    def XOutput(
        self, i: int, dims: Any, options: Any = None, *, dtype: Any = None, device: Any = None
    ) -> Tensor:
        """Return ``Output(i, dims, options)`` in a new wrapper of the same TensorImpl."""
        cdef BlobCore blob = self.output_blob(i, "Operator.XOutput")
        return wrap(_sized(self, blob, dims, options, dtype, device, "Operator.XOutput").impl)

    XOutputTensor = XOutput
    OutputTensor = Output

    def OutputTensorOrUndefined(self, i: int) -> Tensor:
        """Return the tensor of output `i` as it is, or an undefined one if the blob has none."""
        cdef BlobCore blob = self.output_blob(i, "Operator.OutputTensorOrUndefined")
        cdef Tensor tensor = tensor_of(blob)
        return Tensor() if tensor is None else wrap(tensor.impl)

    def _run(self) -> bool:
        """Run `RunOnDevice`; return True. If it fails, the outputs are restored."""
        return run_one(self) == 0

    cdef object compute(self):
        """Compute the outputs, whatever settings of torch are in effect.

        A false result other than None means that it failed.
        """
        if is_neutral():
            return self.RunOnDevice()
        with neutral():
            return self.RunOnDevice()

    cdef bint repeat(self) except -1:
        """Run again in a faster way, if there is one; return whether there was."""
        return False

    cdef OperatorCore another(self):
        """Return an operator on the same blobs that runs while this one runs in another thread.

        The operator itself if it has a state: its class sees to it that two threads can run it.
        """
        return self

    cdef bint is_repeatable(self) noexcept:
        """Return whether it is worth keeping for another run, and keeps little memory."""
        return False

    cdef bint has_blobs_of(self, dict blobs) except -1:
        """Return whether its blobs are those that have their names now."""
        cdef Py_ssize_t i
        for i in range(len(self._inputs)):
            if find_in(blobs, self._definition.inputs[i]) is not self._inputs[i]:
                return False
        for i in range(len(self._outputs)):
            if find_in(blobs, self._definition.outputs[i]) is not self._outputs[i]:
                return False
        return True


# Whether floating-point exceptions of an operator fail it.
cdef int _throws = False


def _set_throws(str value):
    set_word(&_throws, value.lower() in ("1", "true"))


on_flag("caffe2_operator_throw_if_fp_exceptions", _set_throws)


cdef object _watched(OperatorCore operator):
    """Compute the outputs; raise EnforceNotMet if that divides by zero, overflows or is invalid.

    Follows OperatorThrowIfFPExceptions, caffe2/core/operator.h, PyTorch 1.8.1.
    """
    cdef int found
    feclearexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW)
    result = operator.compute()
    found = fetestexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW)
    for what, bit in (
            ("division by zero", FE_DIVBYZERO), ("invalid operation", FE_INVALID),
            ("overflow", FE_OVERFLOW)):
        if found & bit:
            raise EnforceNotMet(
                f"The floating-point exception {what} was encountered; "
                "--caffe2_operator_throw_if_fp_exceptions=0 lets it pass.",
                operator._definition.type)
    return result


cdef object run(OperatorCore operator):
    cdef list backups, outer
    cdef object result
    if operator._outputs is None:
        _refuse_unbound(operator, "Operator.Run")
    backups = [None] * len(operator._outputs)
    lock_object(operator)
    outer = operator._backups
    operator._backups = backups
    unlock_object()
    try:
        result = _watched(operator) if word(&_throws) else operator.compute()
        if result is not None and not result:
            raise ReturnedFalseError(
                f"RunOnDevice returned {result!r}, which means that it failed.",
                "Operator.RunOnDevice")
    except BaseException:
        restore_all(backups)
        raise
    finally:
        _set_backups(operator, outer)
    return True


cdef int _set_backups(OperatorCore operator, list backups) except -1:
    lock_object(operator)
    _before = operator._backups     # released on return
    operator._backups = backups
    unlock_object()
    return 0


cpdef int run_one(OperatorCore operator) except -1:
    """Run one operator, in its faster way if there is one.

    The tape that it keeps is for one thread. So if another thread runs the operator now, as two
    runs of one net do, this one runs an operator of its own on the same blobs.
    """
    if not claim(&operator.is_busy):
        run(operator.another())
        return 0
    try:
        if word(&_throws) or not operator.repeat():
            run(operator)
    finally:
        let_go(&operator.is_busy)
    return 0


def run_all(list operators not None, list position not None: list[int]) -> None:
    """Run operators in order; if one fails, set ``position[0]`` to its index."""
    if is_neutral():
        _run_each(operators, position)
    else:
        with neutral():
            _run_each(operators, position)


cdef int _run_each(list operators, list position) except -1:
    cdef Py_ssize_t i = 0
    try:
        for i in range(len(operators)):
            run_one(<OperatorCore>operators[i])
    except BaseException:
        position[0] = i
        raise
    return 0


cdef Tensor _plain(OperatorCore operator, BlobCore blob):
    """Return the tensor of the blob, or an empty one on the operator's device."""
    cdef Tensor tensor = tensor_of(blob)
    if tensor is None or is_undefined(tensor.impl) \
            or device_type_of(tensor.impl) != operator._definition.device_type:
        if tensor is not None and tensor.impl.storage_initialized():
            _refuse_input_elsewhere(operator, blob)
        tensor = _empty(operator._definition.device_type, operator._definition.device_index)
        hold_tensor(blob, tensor, True)
    elif storage_flags(tensor.impl) & READONLY:
        tensor = _empty(operator._definition.device_type, operator._definition.device_index)
        tensor.Resize(tensor_of(blob).sizes())
        hold_tensor(blob, tensor, True)
    return tensor


cdef int _refuse_input_elsewhere(OperatorCore operator, BlobCore blob) except -1:
    """Raise EnforceNotMet if a blob on another device is an input, whose elements would be lost."""
    cdef Py_ssize_t i
    for i in range(len(operator._inputs)):
        if operator._inputs[i] is blob:
            on = tensor_of(blob).device()
            to_host = operator._definition.device_type == DL_CPU
            raise EnforceNotMet(
                f"Input {i}, blob {operator._definition.inputs[i]!r}, is on {on}, and the operator "
                f"runs on {operator._definition.device}. Copy it by the operator "
                f"{'CopyGPUToCPU' if to_host else 'CopyCPUToGPU'} first.",
                "Operator.Output", condition="the inputs are on the operator's device")
    return 0


cdef Tensor _empty(int device_type, int device_index):
    cdef int64_t zero = 0
    cdef TensorImpl impl = new_impl(new_storage(device_type, device_index), undefined_type)
    impl.set_contiguous(&zero, 1, 0)
    return wrap(impl)


cdef Tensor _sized(
    OperatorCore operator, BlobCore blob, dims, options, dtype, device, str caller,
):
    """Return the blob's tensor, allocated with these sizes, type and device."""
    cdef Dims sizes = parse_dims(dims, caller)
    cdef TypeMeta meta = float32_type
    cdef int device_type = operator._definition.device_type
    cdef int device_index = operator._definition.device_index
    cdef Device on
    if type(options) is TypeMeta and dtype is None and device is None:
        meta = <TypeMeta>options
    elif options is not None or dtype is not None or device is not None:
        chosen = as_options(options, dtype, device)
        if chosen.has_dtype():
            meta = chosen.dtype()
        if chosen.has_device():
            on = chosen.device()
            device_type = on.c_type
            device_index = current_index(on)
    return _allocated(blob, sizes.data, sizes.n, meta, device_type, device_index, caller)


cdef Tensor output_sized(
        OperatorCore operator, BlobCore blob, const int64_t* sizes, int ndim, TypeMeta dtype):
    """Return the tensor of an output blob, allocated, on the operator's device."""
    return _allocated(
        blob, sizes, ndim, dtype, operator._definition.device_type,
        operator._definition.device_index, "Operator.Output")


cdef Tensor _allocated(
        BlobCore blob, const int64_t* sizes, int ndim, TypeMeta dtype, int device_type,
        int device_index, str caller):
    """Return the blob's tensor; its buffer is reused if it is on the device and not read-only."""
    cdef Tensor tensor = tensor_of(blob)
    cdef TensorImpl impl
    if tensor is not None:
        impl = tensor.impl
        if not is_undefined(impl) and device_type_of(impl) == device_type \
                and device_index_of(impl) == device_index \
                and not storage_flags(impl) & READONLY:
            if not has_sizes(impl, sizes, ndim):
                resizing.resize(impl, sizes, ndim, caller)
            allocation.mutable_data(impl, dtype, caller)
            return tensor
    tensor = wrap(allocated(sizes, ndim, dtype, device_type, device_index, caller))
    hold_tensor(blob, tensor, True)
    return tensor


cdef object _object_in(OperatorCore operator, BlobCore blob, object i, object T):
    try:
        return blob.Get(T)
    except EnforceNotMet as error:
        raise type(error)(
            f"{error.message} It is input {i}, blob {operator._definition.inputs[i]!r}.",
            "Operator.Input", condition=error.condition) from error


cdef inline Py_ssize_t _place(
        OperatorCore operator, tuple blobs, object i, str what, str caller) except -1:
    """Return `i` as an index of `blobs`, the operator's inputs or outputs."""
    cdef Py_ssize_t index
    if blobs is None:
        _refuse_unbound(operator, caller)
    index = _index(i, caller)
    if index < 0 or index >= len(blobs):
        _refuse_index(what, i, len(blobs), caller)
    return index


cdef Py_ssize_t _index(object i, str caller) except? -1:
    try:
        return <Py_ssize_t>i
    except (TypeError, OverflowError) as error:
        raise EnforceTypeError(
            f"Inputs and outputs are numbered from 0; {i!r} is not such a number.",
            caller) from error


cdef int _refuse_index(str what, i, n, str caller) except -1:
    raise EnforceIndexError(
        f"There is no {what} {i}: the operator has {n}, counted from 0.", caller,
        condition=f"i < {what.capitalize()}Size()")


cdef int _refuse_unbound(OperatorCore operator, str caller) except -1:
    raise EnforceNotMet(
        f"{type(operator).__name__} has no inputs and outputs yet; let its __init__(self, *args) "
        "call super().__init__(*args) first.", caller)


cdef int _refuse_input(OperatorCore operator, BlobCore blob, i) except -1:
    raise EnforceTypeError(
        f"{blob._describe(operator._definition.inputs[i])}, and input {i} is to be a tensor.",
        "Operator.Input")
