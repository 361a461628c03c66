# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Tape: torch calls that are recorded once, and made again without the function that made them.

Note "What a tape relies on"
An operator's function decides by sizes, types and arguments, never by the values of elements;
`recorder` refuses functions that read values. So on inputs of the same types and sizes it makes the
same calls. In a tape each tensor has a slot. The first slots are those of the operands: inputs, and
buffers that the calls write. A tape that is bound to operands has the arguments of calls ready that
depend on nothing else, and has made the calls that return views of operands. Whoever binds it sees
to it that these tensors keep their memory, types and sizes.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from bridge.dlpack.abi cimport DLTensor
from bridge.exchange.torch_api cimport torch_type
from bridge.exchange.torch_layout cimport described

# For how many types and sizes of inputs a module or a part of a compiled net keeps a tape or code:
# as many as torch.compile compiles a function for.
MOST_SIZES = 8  # pyi: int

cdef extern from "Python.h":
    object PyObject_Call(object function, object arguments, PyObject* keywords)


cdef class Slot:
    """Stands for a tensor in the arguments of a recorded call."""

    def __init__(self, int index) -> None:
        self.index = index


cdef class Memory:
    """The address of the elements of a torch tensor, and their number; see `is_kernel`."""


cdef Memory memory_of(object tensor):
    """Return the memory of a row-major tensor; None if torch does not say where it is."""
    cdef Memory memory = Memory.__new__(Memory)
    cdef object _kept
    cdef DLTensor now
    cdef int i
    if (_kept := described(tensor, &now)) is None:
        return None
    memory.data = now.data
    memory.numel = 1
    for i in range(now.ndim):
        memory.numel *= now.shape[i]
    memory.owner = tensor
    return memory


def is_kernel(function: Callable[..., Any]) -> bool:
    """Return whether a function is a compiled one, as this is: it takes `Memory` for tensors.

    It returns one of the tensors that it was given, which is not looked at.
    """
    return type(function) is type(is_kernel)


cdef class Call:
    """A recorded call of a torch function.

    arguments, keywords: with a `Slot` in the place of each tensor. result: its slot, a tuple of
    slots, or None. is_view: whether it returns a view of operands. roots: the slots of the operands
    that it depends on; None: it depends on results, too. last: the slots that no later call reads.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        tuple arguments,
        dict keywords: dict[str, Any],
        result: int | tuple[int | None, ...] | None,
        bint is_view,
        frozenset roots: frozenset[int] | None,
        tuple last: tuple[int, ...] | None,
    ) -> None:
        self.function = function
        self.is_kernel = is_kernel(function)
        self.arguments = arguments
        self.keywords = keywords or None
        self.result = result
        self.is_view = is_view
        self.roots = roots
        self.last = last

    cdef Call copy(self):
        """Return this call, not bound."""
        cdef Call copied = Call.__new__(Call)
        copied.function, copied.is_kernel = self.function, self.is_kernel
        copied.arguments, copied.keywords = self.arguments, self.keywords
        copied.result, copied.last = self.result, self.last
        copied.is_view, copied.roots = self.is_view, self.roots
        return copied

    cdef int bind(self, list values) except -1:
        """Make the arguments out of `values` for all later calls; keep the result of a view."""
        self.bound_arguments = <tuple>filled(self.arguments, values)
        if self.is_kernel:
            self.bound_arguments = <tuple>with_memory(self.bound_arguments)
        if self.keywords is not None:
            self.bound_keywords = <dict>filled(self.keywords, values)
        if self.is_view:
            self.make(values)
        return 0

    cdef int make(self, list values) except -1:
        """Call the function, with arguments out of `values`; put the result there."""
        cdef object result, keywords
        cdef Py_ssize_t i
        if self.bound_arguments is not None:
            result = PyObject_Call(
                self.function, self.bound_arguments, <PyObject*>self.bound_keywords
                if self.bound_keywords is not None else NULL)
        elif self.keywords is None:
            result = PyObject_Call(self.function, <tuple>filled(self.arguments, values), NULL)
        else:
            keywords = filled(self.keywords, values)
            result = PyObject_Call(
                self.function, <tuple>filled(self.arguments, values), <PyObject*>keywords)
        if type(self.result) is int:
            values[<Py_ssize_t>self.result] = result
        elif self.result is not None:
            for i, slot in enumerate(self.result):
                if slot is not None:
                    values[<Py_ssize_t>slot] = result[i]
        return 0

    cdef int forget(self, list values) except -1:
        """Let go of the tensors that no later call reads."""
        cdef object index
        for index in self.last:
            values[<Py_ssize_t>index] = None
        return 0


cdef class Tape:
    """Recorded calls; see the module.

    calls: a list of Call, in order. slots: the number of slots. results: the slots of the results.
    """

    def __init__(
        self, list calls not None: list[Call], int slots, tuple results: tuple[int, ...] | None
    ) -> None:
        self.calls = calls
        self.slots = slots
        self.results = results

    cdef int bind(self, list values) except -1:
        """Bind the tape to the operands in `values`."""
        cdef Call call
        for call in self.calls:
            if call.roots is not None:
                call.bind(values)
        return 0

    cdef int run(self, list values) except -1:
        """Make the calls on operands that the tape is bound to; the results are in `values`."""
        cdef Call call
        for call in self.calls:
            if not call.is_view:
                call.make(values)
                if call.last is not None:
                    call.forget(values)
        return 0


cdef object filled(object template, list values):
    """Return a copy of the arguments of a call, with the values of slots in their places."""
    cdef type kind = type(template)
    cdef object name, one
    cdef dict found
    cdef tuple copied
    cdef Py_ssize_t i
    if kind is Slot:
        return values[(<Slot>template).index]
    if kind is tuple:
        copied = PyTuple_New(len(<tuple>template))
        for i in range(len(<tuple>template)):
            one = filled((<tuple>template)[i], values)
            Py_INCREF(one)
            PyTuple_SET_ITEM(copied, i, one)
        return copied
    if kind is list:
        return [filled(one, values) for one in <list>template]
    if kind is dict:
        found = {}
        for name, one in (<dict>template).items():
            found[name] = filled(one, values)
        return found
    return template


cdef object with_memory(object value):
    """Return arguments of a kernel, with `Memory` in the places of tensors."""
    cdef Memory memory
    if type(value) is tuple:
        return tuple([with_memory(one) for one in <tuple>value])
    if type(value) is list:
        return [with_memory(one) for one in <list>value]
    if type(value) is <object>torch_type():
        memory = memory_of(value)
        return value if memory is None else memory
    return value
