# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""ModuleTape: a tape that is bound to the tensors of a module's caller.

The operands are inputs and parameters, which are not written, and buffers of the tape's own, which
hold inner results from one call to the next. Outputs are handed out as tensors of their own: where
the calls write one into a buffer, the next call has another buffer, unless nobody has the tensor,
nor its memory, any more.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from cpython.ref cimport Py_REFCNT
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memset

from bridge.c10.python_api cimport FREE_THREADED, claim, let_go, owned
from bridge.caffe2.execution.tape cimport Call, Tape
from bridge.exchange.torch_settings cimport is_neutral, is_observed
from bridge.dlpack.abi cimport DL_COMPLEX, DL_CPU, DLTensor
from bridge.exchange.torch_api cimport address_of, is_plain, torch_c, torch_loaded, untyped_storage
from bridge.exchange.torch_layout cimport described
from bridge.exchange.torch_import cimport import_torch

cdef enum:
    MOST_DIMS = 8

# What a signature has of a tensor, which is row-major.
cdef struct Description:
    int64_t dtype
    int64_t ndim
    int64_t[MOST_DIMS] sizes

cdef object _empty_like = None
cdef object _is_grad_enabled = None
cdef object _users_of_storage = None


def signature_of(list operands not None) -> bytes | None:
    """Return the types and sizes of tensors; None if no tape can be bound to them.

    These are plain, row-major and on the CPU, and no gradients are wanted of them; and torch has no
    settings or observers that change what is computed.
    """
    cdef bytes found
    cdef Description* descriptions
    cdef void* data
    cdef Py_ssize_t i
    if not _is_ready() or is_observed() or not is_neutral():
        return None
    with_grad = _is_grad_enabled()
    found = PyBytes_FromStringAndSize(NULL, len(operands) * sizeof(Description))
    descriptions = <Description*>PyBytes_AS_STRING(found)
    for i in range(len(operands)):
        if not _describe(operands[i], with_grad, &descriptions[i], &data):
            return None
    return found


cdef bint _is_ready() except -1:
    """Return whether torch is new enough, and look up what a call needs of it."""
    global _empty_like, _is_grad_enabled, _users_of_storage
    if not torch_loaded() or torch_c.dlpack == NULL:
        return False
    if _empty_like is None:
        import torch

        if not hasattr(torch._C, "_storage_Use_Count"):
            return False
        _users_of_storage = torch._C._storage_Use_Count
        _is_grad_enabled = torch.is_grad_enabled
        _empty_like = torch.empty_like
    return True


cdef bint _describe(
        object tensor, bint with_grad, Description* description, void** data) except -1:
    """Fill in what a tensor is, and its address; return whether a tape can be bound to it."""
    cdef object _kept
    cdef DLTensor now
    cdef int64_t step = 1
    cdef int i
    if not is_plain(tensor) or (_kept := described(tensor, &now)) is None:
        return False
    if now.ndim > MOST_DIMS or now.device.device_type != DL_CPU or now.data == NULL \
            or now.dtype.code == DL_COMPLEX:
        return False
    memset(description, 0, sizeof(Description))
    description.dtype = now.dtype.code | now.dtype.bits << 8 | now.dtype.lanes << 16
    description.ndim = now.ndim
    for i in range(now.ndim - 1, -1, -1):
        if now.shape[i] > 1 and now.strides[i] != step:
            return False
        description.sizes[i] = now.shape[i]
        step *= now.shape[i]
    if with_grad and owned(torch_c.requires_grad(
            <PyObject*>tensor, torch_c.requires_grad_closure)):
        return False
    if owned(torch_c.is_neg(<PyObject*>tensor, NULL)):
        return False
    data[0] = now.data
    return True


cdef class _Output:
    """An output that calls write into a buffer, and the buffer that it had in the latest call."""

    cdef int slot
    cdef object storage         # of the buffer
    cdef Py_ssize_t references  # to that object in `prepare`, if nobody else has it
    cdef object number          # of the storage, among torch's
    cdef object address
    cdef object nbytes


cdef class ModuleTape:
    """A tape on operands of some types and sizes.

    tape: its first slots are those of the operands, the next those of the buffers. signature: that
    of the operands. buffers: torch tensors.
    """

    cdef Tape tape
    cdef bytes signature
    cdef Py_ssize_t count       # of operands
    cdef bytes places           # the addresses of the operands that the tape is bound to
    cdef list values            # by slot
    cdef list users             # by slot of an operand or buffer: the calls that depend on it
    cdef list outputs           # of _Output; None where the output is the result of a call
    cdef bint is_bound
    cdef int is_busy

    def __init__(self, Tape tape not None, bytes signature not None, list buffers not None) -> None:
        cdef _Output output
        cdef Call call
        self.tape = tape
        self.signature = signature
        self.count = len(signature) // sizeof(Description)
        self.places = bytes(self.count * sizeof(void*))
        self.values = [None] * self.count + buffers
        self.users = [[] for _ in self.values]
        self.values += [None] * (tape.slots - len(self.values))
        for call in tape.calls:
            if call.roots is not None:
                for slot in call.roots:
                    self.users[slot].append(call)
        self.outputs = []
        for slot in tape.results:
            output = None
            if slot < len(self.users):
                output = _Output.__new__(_Output)
                output.slot = slot
            self.outputs.append(output)

    def __call__(self, list operands not None) -> list[Any] | None:
        """Return a list of the outputs; None: the functions have to compute them.

        That is, the operands do not fit the signature, torch has to see what is called, or another
        thread is in a call.
        """
        if len(operands) != self.count or is_observed() or not is_neutral() \
                or not claim(&self.is_busy):
            return None
        try:
            return self.computed(operands)
        finally:
            let_go(&self.is_busy)

    cdef list computed(self, list operands):
        cdef list found = []
        cdef Description* descriptions = <Description*>PyBytes_AS_STRING(self.signature)
        cdef void** places = <void**>PyBytes_AS_STRING(self.places)
        cdef Description now
        cdef void* data
        cdef Py_ssize_t i
        cdef _Output output
        cdef bint with_grad = _is_grad_enabled()
        for i in range(self.count):
            if not _describe(operands[i], with_grad, &now, &data) \
                    or memcmp(&now, &descriptions[i], sizeof(Description)) != 0:
                return None
            # The memory of a tensor, and of those that share it, moves if its storage is resized.
            if places[i] != data or _address(self.values[i]) != data:
                places[i] = NULL
                self.take(i, operands[i])
                places[i] = data
        for output in self.outputs:
            if output is not None:
                self.prepare(output)
        if not self.is_bound:
            self.tape.bind(self.values)
            self.is_bound = True
        self.tape.run(self.values)
        for i, slot in enumerate(self.tape.results):
            value = self.values[slot]
            if self.outputs[i] is not None:     # whoever has it may change its sizes
                value = owned(torch_c.data(<PyObject*>value, torch_c.data_closure))
            found.append(value)
        for i, slot in enumerate(self.tape.results):
            if self.outputs[i] is None:
                self.values[slot] = None
        return found

    cdef int take(self, Py_ssize_t slot, object tensor) except -1:
        """Bind the tape to a tensor, by another one of the same memory: its sizes may change."""
        alias = owned(torch_c.data(<PyObject*>tensor, torch_c.data_closure))
        import_torch(alias, None).storage.check()
        self.values[slot] = alias
        self.bind(slot)
        return 0

    cdef int prepare(self, _Output output) except -1:
        """See to it that the calls write an output into memory that nobody else has."""
        cdef object storage = output.storage
        if not FREE_THREADED and storage is not None \
                and Py_REFCNT(storage) == output.references \
                and _users_of_storage(output.number) == 2 \
                and address_of(storage) == output.address \
                and storage.nbytes() == output.nbytes:
            return 0
        mine = _empty_like(self.values[output.slot])
        output.storage = None
        self.values[output.slot] = mine
        self.bind(output.slot)
        storage = untyped_storage(mine)
        output.number = storage._cdata
        output.address = address_of(storage)
        output.nbytes = storage.nbytes()
        output.storage = storage
        output.references = Py_REFCNT(storage)      # two here, and one of torch 2.13
        return 0

    cdef int bind(self, Py_ssize_t slot) except -1:
        """Make the arguments of calls that depend on an operand anew, once there are any."""
        cdef Call call
        if self.is_bound:
            for call in self.users[slot]:
                call.bind(self.values)
        return 0


cdef void* _address(object tensor) except? NULL:
    """Return the address of the elements of a torch tensor."""
    cdef DLTensor now
    return now.data if described(tensor, &now) is not None else NULL
