# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""FunctionCore: runs the function of an operator on blobs.

The inputs are torch tensors over the memory of the blobs. A result that the function wrote into the
output's buffer stays there. Another one becomes the value of its blob:

- where the output is in place of an input, it is copied into the input's memory, so that others who
  share that memory see it; a view of the input itself only changes the sizes;
- a view of an input is copied, since outputs have memory of their own;
- where the buffer has its type and sizes and the function can write it (`Out`), or it is small, it
  is copied there, so that the blob's memory stays the same from the first run on;
- otherwise its memory becomes the blob's.

Buffers are passed to functions that can write them, once their sizes are known: for outputs that
must be in place always, for others from a run on inputs of the same types and sizes. The second
such run is recorded, and from the third on the tape is played; see `tape`.
"""

from cpython.object cimport PyObject

from bridge.c10.python_api cimport FREE_THREADED, lock_object, unlock_object
from bridge.c10.slots cimport new_instance
from bridge.c10.storage cimport EXTERNAL, begin_of, nbytes_of
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    device_type_of,
    dtype_of,
    is_pod_now,
    is_undefined,
    origin_of,
    seen as seen_impl,
    storage_flags,
    storage_nbytes,
)
from bridge.c10.type_meta cimport TypeMeta, undefined_type
from bridge.caffe2.blobs.core cimport BlobCore, tensor_of
from bridge.caffe2.blobs.replace cimport WORTH_ADOPTING, put_result, same_start
from bridge.caffe2.execution.operator_core cimport OperatorCore, output_sized
from bridge.caffe2.execution.tape cimport Tape
from bridge.caffe2.execution.taped_operator cimport (
    BlobTape,
    BoundCore,
    Layout,
    Signature,
    TapedOperator,
    all_fit,
    elements_of,
    has_layout,
    signature_in,
)
from bridge.exchange.torch_settings cimport is_neutral
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.exchange.torch_export cimport torch_operand
from bridge.exchange.torch_import cimport import_torch

from numpy import ndarray

from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.exchange.torch_settings import neutral

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState* PyThreadState_Next(PyThreadState* state)
    PyThreadState* PyInterpreterState_ThreadHead(void* interpreter)
    void* PyInterpreterState_Get()


cdef class FunctionCore(TapedOperator):
    """An operator whose function computes its outputs; the base of `FunctionOperator`."""

    cdef bint _is_prepared(self) noexcept:
        lock_object(self)
        cdef bint found = self._bound is not None
        unlock_object()
        return found

    cdef int _prepare(self) except -1:
        """Set `_bound` and `_arguments`. Two threads may: both run an operator with a state."""
        cdef BoundCore bound = <BoundCore?>self._definition.checked
        cdef dict arguments = bound.arguments
        if bound.is_filled:
            wants = bound.wants
            arguments = dict(arguments)
            if "RandomGenerator" in wants:
                arguments[wants["RandomGenerator"]] = self._generator()
            if "TargetDevice" in wants:
                arguments[wants["TargetDevice"]] = self._torch_device()
        lock_object(self)
        if self._bound is None:
            self._arguments = arguments
            self._bound = bound
        unlock_object()
        return 0

    def RunOnDevice(self) -> None:
        """Compute the outputs by the function."""
        self.compute()

    cdef object compute(self):
        """Compute the outputs by the function, whatever settings of torch are in effect."""
        if is_neutral():
            self._compute(True)
        else:
            with neutral():     # which keeps a recorder from seeing the calls
                self._compute(False)

    cdef object _compute(self, bint may_record):
        """Call the function on the inputs, and put its results into the outputs."""
        cdef list impls, operands, results, layouts, buffers = None, outputs, elements = []
        cdef dict arguments
        cdef BoundCore bound
        cdef Signature signature
        cdef Tape tape
        cdef BlobTape blob_tape
        if not self._is_prepared():
            self._prepare()
        bound = self._bound
        impls = self._input_impls()
        if impls is None:
            return self._compute_objects()
        signature = bound.signature_of(impls)
        layouts = self._layouts(signature, impls)
        tape = signature.recorded() if signature is not None else None
        if tape is not None and may_record and self._are_plain(impls):
            blob_tape = self._blob_tape(tape, signature, layouts)
            if blob_tape is not None and self.play(blob_tape):
                self.set_tape(blob_tape)
                return None
            may_record = False
        if signature is None:
            elements = [elements_of(<TensorImpl>impls[i]) for i in bound.sized_by]
        operands = [_own_operand(<TensorImpl>impl) for impl in impls]
        _separate(operands, self._inputs)
        if layouts is not None:
            buffers = self._buffers(layouts, impls, operands)
            may_record = may_record and buffers is not None
        if signature is not None and not _have_layouts(operands, buffers, signature):
            signature, buffers = None, None      # another thread changed a blob meanwhile
        arguments = self._arguments
        if buffers is not None:
            arguments = dict(arguments)
            arguments[bound.out_name] = buffers[0] if len(buffers) == 1 else tuple(buffers)
        calls = None
        if may_record and signature is not None and bound.is_recorded and self._are_plain(impls):
            from bridge.caffe2.execution.recorder import record

            returned, calls = record(bound.function, operands, arguments)
        else:
            returned = bound.function(*operands, **arguments)
        results = self._checked_results(returned)
        self._put(results, impls, operands, buffers)
        try:
            outputs = self._output_impls(results)
            if signature is None:
                signature = signature_in(impls, outputs) if outputs is not None else None
                # An output in place, or another thread, gave a blob other sizes or elements.
                if signature is not None and not (
                        _have_layouts(operands, None, signature)
                        and _have_sizes(results, signature) and elements
                        == [elements_of(<TensorImpl>impls[i]) for i in bound.sized_by]):
                    signature = None
                if signature is not None and None not in elements:
                    for i in range(len(elements)):
                        (<Layout>signature.inputs[bound.sized_by[i]]).elements = elements[i]
                    bound.remember(signature)
            elif calls is not None and outputs is not None:
                from bridge.caffe2.execution.recorder import compile_calls

                tape = compile_calls(
                    calls, operands, buffers or [], results, bound.in_place, bound.sized_by)
                signature.record(tape)
                if tape is None:
                    bound.is_recorded = False
        except MemoryError:
            pass        # the outputs are there, and the next run can learn as well
        return None

    cdef bint _are_plain(self, list impls) except -1:
        """Return whether all inputs are as a tape takes them."""
        return all([self.is_plain(<TensorImpl>impl) for impl in impls])

    cdef BlobTape _blob_tape(self, Tape tape, Signature signature, list layouts):
        """Return a tape bound to the blobs, whose buffers it allocates; None: it cannot be.

        layouts: of the buffers; None: it has no buffers.
        """
        cdef Layout layout
        cdef list tensors = [tensor_of(<BlobCore>blob) for blob in self._inputs]
        cdef Py_ssize_t o
        if any([one is None for one in tensors]):   # another thread has reset it
            return None
        layouts = layouts or []
        for o in range(len(layouts)):
            layout = <Layout>layouts[o]
            tensors.append(None if layout is None else output_sized(
                self, self.output_blob(o, "Operator.Output"), layout.sizes, layout.ndim,
                layout.dtype))
        if self.overlaps([None if one is None else (<Tensor>one).impl for one in tensors]):
            return None
        return self.bound_tape(tape, signature, tensors, signature.inputs + layouts)

    cdef OperatorCore another(self):
        cdef FunctionCore made
        if not self._definition.plain or (<BoundCore?>self._definition.checked).is_filled:
            return self     # it may have a state, such as a generator
        made = <FunctionCore>new_instance(type(self), ())
        made._definition = self._definition
        made._workspace = self._workspace
        made._inputs = self._inputs
        made._outputs = self._outputs
        return made

    cdef bint is_repeatable(self) noexcept:
        if not self._is_prepared() or not self._bound.has_tape():
            return False
        for blob in self._inputs:
            if not _is_little(tensor_of(<BlobCore>blob), EXTERNAL):
                return False
        for blob in self._outputs:      # which may have the memory of a torch function's result
            if not _is_little(tensor_of(<BlobCore>blob), 0):
                return False
        return True

    cdef list _input_impls(self):
        """Return the TensorImpls of the inputs, after checks of their types and devices.

        None: an input has elements that torch does not know, such as strings.
        """
        cdef list impls = []
        cdef tuple types = self._bound.types
        cdef Py_ssize_t i
        cdef Tensor tensor
        cdef TensorImpl impl, other
        cdef TypeMeta dtype
        cdef object allowed
        cdef bint has_objects = self._bound.has_strings
        for i in range(len(self._inputs)):
            tensor = tensor_of(self.input_blob(i, "Operator.Input"))
            if tensor is None:
                self.Input(i)           # raises
            impl = tensor.impl
            allowed = types[i]
            if type(allowed) is int and <Py_ssize_t>allowed != i:
                other = <TensorImpl>impls[<Py_ssize_t>allowed]
                if dtype_of(impl) != dtype_of(other):
                    self._refuse_type(i, (other.dtype(),))
            elif type(allowed) is tuple:
                dtype = <TypeMeta>dtype_of(impl)
                if dtype is not (<tuple>allowed)[0] and dtype not in <tuple>allowed:
                    self._refuse_type(i, allowed)
            if not is_pod_now(impl) and dtype_of(impl) != <PyObject*>undefined_type:
                has_objects = True
            if not is_undefined(impl) and not self._is_on_device(impl) \
                    and i not in self._bound.on_host \
                    and not (i in self._bound.across
                             and device_type_of(impl) == self._definition.device_type):
                self._refuse_device(i)
            impls.append(impl)
        return None if has_objects else impls

    cdef list _layouts(self, Signature signature, list impls):
        """Return the types and sizes of the buffers, None for an output without; None: no buffers.
        """
        cdef BoundCore bound = self._bound
        cdef list layouts
        cdef Layout layout
        if bound.out_name is None:
            return None
        if signature is not None and len(signature.outputs) == len(self._outputs) and (
                not bound.reads_values or bound.forced is None
                and all_fit(signature.outputs, self._output_impls(signature.outputs))):
            return signature.outputs
        if bound.forced is None:
            return None
        layouts = [None] * len(self._outputs)
        for o, i in bound.forced.items():
            layout = Layout.__new__(Layout)
            if layout.set(<TensorImpl>impls[i]):
                layouts[o] = layout
        return layouts

    cdef list _buffers(self, list layouts, list impls, list operands):
        """Return torch tensors over the outputs' buffers, None where the layout is not known.

        None: the operator `overlaps`.
        """
        cdef list buffers = [], written = list(impls)
        cdef Layout layout
        cdef Py_ssize_t o
        cdef Tensor tensor
        for o in range(len(self._outputs)):
            layout = <Layout>layouts[o]
            if layout is None:
                buffers.append(None)
                written.append(None)
                continue
            tensor = output_sized(
                self, self.output_blob(o, "Operator.Output"), layout.sizes, layout.ndim,
                layout.dtype)
            written.append(tensor.impl)
            place = self._bound.in_place.get(o)
            if place is not None and self._outputs[o] is self._inputs[place] \
                    and tensor.impl is <TensorImpl>impls[place]:
                buffers.append(operands[place])
                continue
            buffers.append(_own_operand(tensor.impl))
        return None if self.overlaps(written) else buffers

    def _put_tensor(self, o: int, tensor: Any) -> None:
        """Set output `o` to a new torch tensor, which nothing else refers to."""
        cdef TensorImpl fresh = import_torch(tensor.contiguous(), None)
        self._put_one(o, tensor, fresh)

    def _checked_results(self, returned: Any) -> list[Any]:
        """Return the results of the function as a list, one for each output."""
        cdef list results
        cdef Py_ssize_t n = len(self._outputs)
        if type(returned) is tuple or type(returned) is list:
            results = list(returned)[:n]
        elif returned is None and n:
            results = [None] * n
        else:
            results = [returned][:n]
        if len(results) < n:
            raise EnforceNotMet(
                f"The function returned {len(results)} tensors, and the operator has {n} outputs.",
                self._definition.type)
        return results

    cdef int _put(self, list results, list impls, list operands, list buffers) except -1:
        """Set the outputs to results."""
        cdef list fresh = []
        cdef Py_ssize_t o
        cdef object value, place
        cdef TensorImpl impl, shared
        for o in range(len(results)):
            value = results[o]
            if value is None or (buffers is not None and value is buffers[o]):
                fresh.append(None)
                continue
            if type(value) is ndarray and value.dtype.kind in "SO":
                fresh.append((value, None))
                continue
            if not hasattr(value, "untyped_storage"):
                raise EnforceTypeError(
                    f"The function returned {type(value).__name__} as output {o}, which must be a "
                    "torch.Tensor, or a numpy.ndarray of bytes.", self._definition.type)
            if value.requires_grad:
                value = value.detach()
            impl = import_torch(value, None)
            shared = _sharing(impl, impls, fresh)
            if shared is not None or (buffers is not None and _is_any(impl, buffers)):
                place = self._bound.in_place.get(o)
                if not (shared is not None and place is not None and shared is impls[place]
                        and impl.flags & CONTIGUOUS and same_start(impl, shared)):
                    value = _row_major_copy(value)
                    impl = import_torch(value, None)
            elif not impl.flags & CONTIGUOUS:
                value = _row_major_copy(value)
                impl = import_torch(value, None)
            fresh.append((value, impl))
        for o in range(len(results)):
            if fresh[o] is not None:
                value, impl = fresh[o]
                if impl is None:
                    self._put_strings(o, value)
                else:
                    self._put_one(o, value, impl)
        return 0

    cdef list _output_impls(self, list results):
        """Return the TensorImpls of the outputs, or None if one has none, or two are one blob.

        It is None in the list for an output that the function does not write.
        """
        cdef list found = []
        cdef Tensor tensor
        cdef Py_ssize_t o
        if len(set(self._outputs)) < len(self._outputs):    # buffers would overlap
            return None
        for o in range(len(self._outputs)):
            if results[o] is None:
                found.append(None)
                continue
            tensor = tensor_of(<BlobCore>self._outputs[o])
            if tensor is None or is_undefined(tensor.impl) \
                    or not is_pod_now(tensor.impl):     # torch cannot write there
                return None
            found.append(tensor.impl)
        return found

    cdef int _put_one(self, Py_ssize_t o, object value, TensorImpl fresh) except -1:
        cdef BoundCore bound = self._bound
        return put_result(
            self.output_blob(o, "Operator.Output"), value, fresh,
            bound.in_place.get(o) is not None, bound.out_name is not None)


cdef bint _is_little(Tensor tensor, int unwanted) noexcept:
    """Return whether a tensor has little memory, which has none of the `unwanted` flags."""
    return tensor is not None and not is_undefined(tensor.impl) \
        and storage_nbytes(tensor.impl) <= WORTH_ADOPTING \
        and not storage_flags(tensor.impl) & unwanted


cdef object _own_operand(TensorImpl impl):
    """Return a torch tensor over the memory of `impl`, that no other thread has.

    torch gives a tensor other sizes where it is an ``out=`` of wrong sizes, as it may be where two
    threads run operators on one blob.
    """
    cdef object tensor = torch_operand(impl)
    # Without the GIL other threads come and go.
    if FREE_THREADED or (tensor is origin_of(impl) and PyThreadState_Next(
            PyInterpreterState_ThreadHead(PyInterpreterState_Get())) != NULL):
        return tensor.detach()
    return tensor


cdef int _separate(list operands, tuple blobs) except -1:
    """See to it that the operands of different blobs are different tensors, as in a later run.

    Two blobs may have been fed one torch tensor, and a tape knows operands by their tensors.
    """
    cdef Py_ssize_t i, j
    for i in range(1, len(operands)):
        for j in range(i):
            if operands[i] is operands[j] and blobs[i] is not blobs[j]:
                operands[i] = operands[i].detach()
                break
    return 0


cdef bint _have_layouts(list operands, list buffers, Signature signature) except -1:
    """Return whether torch tensors are row-major and have the types and sizes in `signature`."""
    cdef Py_ssize_t i
    for i in range(len(operands)):
        if not has_layout(operands[i], <Layout>signature.inputs[i]):
            return False
    if buffers is not None:
        for i in range(len(buffers)):
            if buffers[i] is not None and not has_layout(buffers[i], <Layout>signature.outputs[i]):
                return False
    return True


cdef bint _have_sizes(list results, Signature signature) except -1:
    """Return whether torch tensors, None for one that is not there, have the sizes of outputs."""
    cdef Layout layout
    cdef Py_ssize_t i, o
    for o in range(len(signature.outputs)):
        layout = signature.outputs[o]
        if layout is not None \
                and results[o].shape != tuple([layout.sizes[i] for i in range(layout.ndim)]):
            return False
    return True


cdef object _row_major_copy(object tensor):
    import torch

    return tensor.clone(memory_format=torch.contiguous_format)


cdef bint _overlap(TensorImpl a, TensorImpl b):
    """Return whether the storages of two tensors overlap, and neither is without elements."""
    cdef char* a_begin
    cdef char* b_begin
    a, b = seen_impl(a), seen_impl(b)
    a_begin, b_begin = begin_of(a.storage), begin_of(b.storage)
    return a.c_numel != 0 and b.c_numel != 0 \
        and device_type_of(a) == device_type_of(b) \
        and a_begin < b_begin + nbytes_of(b.storage) \
        and b_begin < a_begin + nbytes_of(a.storage)


cdef TensorImpl _sharing(TensorImpl fresh, list impls, list earlier):
    """Return the input, or the earlier result, whose memory `fresh` shares, or None."""
    cdef TensorImpl impl
    for impl in impls:
        if not is_undefined(impl) and _overlap(fresh, impl):
            return impl
    for one in earlier:
        if one is not None and one[1] is not None and _overlap(fresh, <TensorImpl>one[1]):
            return <TensorImpl>one[1]
    return None


cdef bint _is_any(TensorImpl fresh, list buffers) except -1:
    """Return whether `fresh` shares the memory of one of the buffers."""
    for buffer in buffers:
        if buffer is not None and _overlap(fresh, import_torch(buffer, None)):
            return True
    return False
