# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""NetProgram: the recorded programs of all operators of a net, as one.

Nobody else has the blobs of a module's own net. So what each operator looks at before it runs, that
its blobs still have the memory, type and sizes of the recording, is known for all but the caller's
tensors; and a new tensor that an operator returns is an argument of the next calls, not the value
of a blob. A program is for inputs of some types and sizes.

Outputs are handed out as tensors of their own. Where calls write one into a buffer, the next run
has another buffer, unless nobody has the tensor, nor its memory, any more.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_REFCNT
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from bridge.c10.python_api cimport FREE_THREADED, claim, let_go, owned
from bridge.c10.tensor_impl cimport CONTIGUOUS
from bridge.caffe2.blobs.core cimport BlobCore, tensor_of
from bridge.caffe2.execution.function_core cimport FunctionCore
from bridge.caffe2.execution.calls cimport Call, Slot
from bridge.caffe2.execution.program cimport Layout, Operand, Program, has_layout
from bridge.caffe2.execution.program_core cimport Seen
from bridge.caffe2.execution.torch_state cimport is_neutral, is_observed_now
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.dlpack.abi cimport DL_COMPLEX, DL_CPU, DLDataType, DLTensor
from bridge.exchange.torch_api cimport address_of, is_plain, torch_c, untyped_storage
from bridge.exchange.torch_description cimport described
from bridge.exchange.torch_import cimport import_torch

cdef object _empty_like = None
cdef object _is_grad_enabled = None
cdef object _users_of_storage = None


cdef class Given:
    """An input or a parameter, as a program is bound to it."""


cdef class Returned:
    """An output of a program, and the buffer that it had in the latest run."""


cdef class NetCall(Call):
    """A call of a program of a net."""


cdef class NetProgram:
    """The calls of all operators of a net; see the module. `merge` makes it."""

    def __call__(
        self, tuple inputs not None, dict keys not None, dict parameters not None,
        dict buffers not None,
    ):
        """Return the output, or a tuple of several, for the inputs and parameters of a module.

        keys: the parameters' keys in `parameters` or `buffers`, in order. None: these are not
        tensors that the program can take, torch has to see what is called, or the program is
        running in another thread.
        """
        if len(inputs) != len(self.inputs) or is_observed_now() or not is_neutral() \
                or not claim(&self.is_busy):
            return None
        try:
            return _outputs(self, inputs, keys, parameters, buffers)
        finally:
            let_go(&self.is_busy)

    cdef int bind(self, list calls) except -1:
        """Make the arguments of calls that depend on no result anew, and the views of operands."""
        cdef NetCall call
        for call in calls:
            call.bind(self.values)
        return 0

    cdef bint take(
            self, Given given, object tensor, bint with_grad, bint is_parameter) except -1:
        """Bind the program to a tensor of the caller's; return whether that is possible.

        with_grad: whether torch records gradients.
        """
        cdef object _kept
        cdef DLTensor now
        cdef Layout layout = given.layout
        cdef int64_t step = 1
        cdef int i
        if not is_plain(tensor) or (_kept := described(tensor, &now)) is None:
            return False
        if now.ndim != layout.ndim or now.device.device_type != DL_CPU or now.data == NULL \
                or memcmp(&now.dtype, &layout.dtype.c_dlpack, sizeof(DLDataType)) != 0:
            return False
        for i in range(now.ndim - 1, -1, -1):
            if now.shape[i] != layout.sizes[i] or (now.shape[i] > 1 and now.strides[i] != step):
                return False
            step *= now.shape[i]
        if with_grad and owned(torch_c.requires_grad(
                <PyObject*>tensor, torch_c.requires_grad_closure)):
            return False
        # A parameter that stands for its negative is the imaginary part of complex elements, which
        # is row-major only if it is a single one.
        if (not is_parameter or step == 1) and owned(torch_c.is_neg(<PyObject*>tensor, NULL)):
            return False
        if now.data == given.data and (
                is_parameter or address(self.values[given.slot]) == now.data):
            return True
        # Another tensor of the same memory: what happens to the caller's does not concern it.
        alias = owned(torch_c.data(<PyObject*>tensor, torch_c.data_closure))
        if is_parameter:
            import_torch(alias, None).storage.check()
        if not has_layout(alias, layout):
            return False        # another thread gave it other sizes in the meantime
        given.data = NULL
        self.values[given.slot] = alias
        if self.is_ready:
            self.bind(given.users)
        given.data = now.data
        return True

    cdef int prepare(self, Returned output) except -1:
        """See to it that the calls write an output into memory that nobody else has."""
        if not FREE_THREADED and output.storage is not None and Py_REFCNT(output.storage) == 1 \
                and _users_of_storage(output.number) == 2 \
                and address_of(output.storage) == output.address \
                and output.storage.nbytes() == output.nbytes:
            return 0
        mine = _empty_like(self.values[output.slot])
        output.storage = None
        self.values[output.slot] = mine
        if self.is_ready:
            self.bind(output.users)
        storage = untyped_storage(mine)
        output.number = storage._cdata
        output.address = address_of(storage)
        output.nbytes = storage.nbytes()
        output.storage = storage
        return 0

    cdef int run(self) except -1:
        """Make the calls."""
        cdef NetCall call
        cdef list values = self.values
        for call in self.calls:
            call.make(values)
            if call.checked is not None:
                _check(values, call.checked)
            if call.last is not None:
                call.forget(values)
        return 0


cdef object _outputs(
        NetProgram program, tuple inputs, dict keys, dict parameters, dict buffers):
    cdef list found = []
    cdef Py_ssize_t i
    cdef Returned output
    cdef bint with_grad = _is_grad_enabled()
    if len(keys) != len(program.parameters):
        return None
    for i in range(len(inputs)):
        if not program.take(<Given>program.inputs[i], inputs[i], with_grad, False):
            return None
    i = 0
    for key in keys.values():
        tensor = parameters[key] if key in parameters else buffers[key]
        if not program.take(<Given>program.parameters[i], tensor, with_grad, True):
            return None
        i += 1
    for output in program.outputs:
        if output.is_written:
            program.prepare(output)
    if not program.is_ready:
        program.bind(program.bound)
        program.is_ready = True
    program.run()
    for output in program.outputs:
        value = program.values[output.slot]
        if output.is_written:       # whoever has it may change its sizes
            value = owned(torch_c.data(<PyObject*>value, torch_c.data_closure))
        found.append(value)
    for output in program.outputs:
        if not output.is_written:
            program.values[output.slot] = None
    return found[0] if len(found) == 1 else tuple(found)


cdef void* address(object tensor) except? NULL:
    """Return the address of the elements of a torch tensor."""
    cdef DLTensor now
    return now.data if described(tensor, &now) is not None else NULL


cdef int _check(list values, tuple checked) except -1:
    """See to it that outputs of an operator are row-major: kernels rely on it."""
    cdef Py_ssize_t slot
    for slot, layout in checked:
        if not has_layout(values[slot], <Layout>layout):
            values[slot] = values[slot].contiguous()
            if not has_layout(values[slot], <Layout>layout):
                raise ValueError("The result of an operator has other sizes than in the recording.")
    return 0


def merge(
    list operators not None, tuple inputs not None, tuple parameters not None,
    tuple outputs not None,
):
    """Return the programs of operators, which have just run, as one.

    inputs, parameters: blobs that no operator writes. outputs: blobs. None: an operator has no
    recorded program, or one for other sizes.
    """
    cdef _Merger merger
    global _empty_like, _is_grad_enabled, _users_of_storage
    if torch_c.dlpack == NULL:
        return None
    if _empty_like is None:
        import torch

        if not hasattr(torch._C, "_storage_Use_Count"):
            return None
        _users_of_storage = torch._C._storage_Use_Count
        _is_grad_enabled = torch.is_grad_enabled
        _empty_like = torch.empty_like
    merger = _Merger.__new__(_Merger)
    merger.start(operators)
    for blob in inputs:
        if not merger.give(<BlobCore>blob, merger.program.inputs):
            return None
    for blob in parameters:
        if not merger.give(<BlobCore>blob, merger.program.parameters):
            return None
    for operator in operators:
        if not isinstance(operator, FunctionCore) or not merger.add(<FunctionCore>operator):
            return None
    if not merger.finish(outputs):
        return None
    return merger.program


cdef class _Merger:
    """The state of `merge`."""

    cdef NetProgram program
    cdef list layouts           # by slot: its Layout, of tensors of blobs
    cdef list roots             # by slot: the slots that it depends on; None: a result of a run
    cdef list all_calls
    cdef dict slots             # the slot that a blob has now, by id
    cdef dict writers           # how many operators write a blob, by id

    cdef int start(self, list operators) except -1:
        cdef NetProgram program = NetProgram.__new__(NetProgram)
        program.values, program.calls, program.bound = [], [], []
        program.inputs, program.parameters, program.outputs = [], [], []
        self.program = program
        self.layouts, self.roots, self.all_calls = [], [], []
        self.slots, self.writers = {}, {}
        for operator in operators:
            if isinstance(operator, FunctionCore):
                for blob in (<FunctionCore>operator)._outputs:
                    if _place_of(blob, (<FunctionCore>operator)._inputs) < 0:
                        self.writers[id(blob)] = self.writers.get(id(blob), 0) + 1
        return 0

    cdef int slot(self, object value, Layout layout, object roots) except -1:
        """Return a new slot. roots: None for the result of a call that a run makes."""
        self.program.values.append(value)
        self.layouts.append(layout)
        self.roots.append(roots)
        return len(self.roots) - 1

    cdef int root(self, object value, Layout layout) except -1:
        cdef int slot = self.slot(value, layout, None)
        self.roots[slot] = frozenset((slot,))
        return slot

    cdef bint give(self, BlobCore blob, list place) except -1:
        cdef Tensor tensor = tensor_of(blob)
        cdef Given given = Given.__new__(Given)
        given.layout = Layout.__new__(Layout)
        if tensor is None or not tensor.impl.flags & CONTIGUOUS \
                or not given.layout.set(tensor.impl) \
                or given.layout.dtype.c_dlpack.code == DL_COMPLEX:
            return False
        given.slot = self.root(None, given.layout)
        given.users = []
        self.slots[id(blob)] = given.slot
        place.append(given)
        return True

    cdef bint add(self, FunctionCore operator) except -1:
        """Add the calls of an operator; return whether that is possible."""
        cdef Program program = operator._program
        cdef Py_ssize_t n = len(operator._inputs), o
        cdef Call call
        cdef list local
        cdef bint has_buffers
        cdef list new_layouts
        cdef Seen seen = None if program is None else <Seen?>program.seen
        if seen is None or not program.is_complete \
                or len(seen.outputs) != len(operator._outputs):
            return False
        new_layouts = seen.outputs
        has_buffers = len(program.operands) > n
        local = [None] * len(program.values)
        for i, blob in enumerate(operator._inputs):
            slot = self.slots.get(id(blob))
            if slot is None or not _same(<Layout>self.layouts[slot], seen.inputs[i]) \
                    or not _same(<Layout>self.layouts[slot], (<Operand>program.operands[i]).layout):
                return False
            local[i] = slot
        if has_buffers:
            for o, blob in enumerate(operator._outputs):
                operand = <Operand>program.operands[n + o]
                if operand is None:
                    continue
                if not _same(<Layout>new_layouts[o], (<Operand>operand).layout):
                    return False
                if _place_of(blob, operator._inputs) >= 0:
                    local[n + o] = self.slots[id(blob)]
                    if not _same(<Layout>new_layouts[o], <Layout>self.layouts[local[n + o]]):
                        return False
                    continue
                buffer = program.values[n + o]
                if self.writers[id(blob)] > 1:
                    buffer = _empty_like(buffer)
                local[n + o] = self.root(buffer, <Layout>new_layouts[o])
        for call in program.calls:
            self.add_call(call, local)
        for o, blob in enumerate(operator._outputs):
            if new_layouts[o] is None:
                continue        # it is not written
            if program.results is not None and program.results[o] >= 0:
                slot = local[<Py_ssize_t>program.results[o]]
                if not self.check_result(slot, <Layout>new_layouts[o]):
                    return False
                self.slots[id(blob)] = slot
            elif has_buffers:
                self.slots[id(blob)] = local[n + o]
            else:
                return False
        return True

    cdef int add_call(self, Call call, list local) except -1:
        cdef set used = set()
        cdef NetCall added
        arguments = _with_slots(call.arguments, local, used)
        keywords = None if call.keywords is None else _with_slots(call.keywords, local, used)
        is_bound = all([self.roots[slot] is not None for slot in used])
        is_view = call.is_view and is_bound
        roots = frozenset().union(*[self.roots[slot] for slot in used]) if is_bound else None
        result = call.result
        if type(result) is int:
            local[result] = self.slot(None, None, roots if is_view else None)
            result = local[result]
        elif result is not None:
            places = []
            for one in result:
                if one is not None:
                    local[one] = self.slot(None, None, roots if is_view else None)
                    one = local[one]
                places.append(one)
            result = tuple(places)
        added = NetCall(call.function, arguments, keywords, result, is_view, is_bound, None)
        self.all_calls.append((added, used, roots))
        return 0

    cdef bint check_result(self, object slot, Layout layout) except -1:
        """Mark the call that makes an output: it checks the layout of what it returns."""
        cdef NetCall call
        if slot is None or self.roots[slot] is not None:
            return False
        self.layouts[slot] = layout
        for call, _, _ in reversed(self.all_calls):
            if call.result == slot or (type(call.result) is tuple and slot in call.result):
                call.checked = (call.checked or ()) + ((slot, layout),)
                return True
        return False

    cdef bint finish(self, tuple outputs) except -1:
        """Add the outputs, and what calls are bound to or are the last to read."""
        cdef NetProgram program = self.program
        cdef NetCall call
        cdef Returned output
        cdef Given given
        cdef dict users = {}
        cdef set later = set()
        for call, _used, roots in self.all_calls:
            if call.is_bound:
                for slot in roots:
                    users.setdefault(slot, []).append(call)
                program.bound.append(call)
            if not call.is_view:
                program.calls.append(call)
        for blob in outputs:
            output = Returned.__new__(Returned)
            slot = self.slots.get(id(blob))
            if slot is None:
                return False
            output.slot = slot
            output.is_written = self.roots[slot] is not None
            output.users = users.get(slot, [])
            if output.is_written and self.roots[slot] != {slot}:
                return False
            program.outputs.append(output)
            later.add(slot)
        for given in program.inputs + program.parameters:
            if given.slot in later:
                return False
            given.users = users.get(given.slot, [])
        for call, used, _roots in reversed(self.all_calls):
            mentioned = set(used)
            if type(call.result) is int:
                mentioned.add(call.result)
            elif call.result is not None:
                mentioned.update([slot for slot in call.result if slot is not None])
            last = [slot for slot in mentioned - later if self.roots[slot] is None]
            if last and not call.is_view:
                call.last = tuple(last)
            later.update(mentioned)
        return True


cdef Py_ssize_t _place_of(object blob, tuple blobs):
    """Return the index of a blob; -1 if it is none of them."""
    cdef Py_ssize_t i
    for i in range(len(blobs)):
        if blobs[i] is blob:
            return i
    return -1


cdef bint _same(Layout a, Layout b):
    return a.dtype is b.dtype and a.ndim == b.ndim and a.ndim >= 0 \
        and memcmp(a.sizes, b.sizes, a.ndim * sizeof(int64_t)) == 0


cdef object _with_slots(object template, list local, set used):
    """Return the arguments of a call with slots of the net in the places of its operator's."""
    kind = type(template)
    if kind is Slot:
        slot = local[(<Slot>template).index]
        used.add(slot)
        return Slot(slot)
    if kind is tuple:
        return tuple([_with_slots(one, local, used) for one in template])
    if kind is list:
        return [_with_slots(one, local, used) for one in template]
    if kind is dict:
        return {name: _with_slots(one, local, used) for name, one in template.items()}
    return template
