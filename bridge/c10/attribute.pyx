# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Attributes that are methods as well: ``x.dtype``, as NumPy has it, and ``x.dtype()``, as ATen."""

from cpython.object cimport PyObject, PyTypeObject

from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.reports cimport unlikely
from bridge.c10.slots cimport PyVectorcall_NARGS, forbid_calling, make_method_descriptor


class Count(int):
    """A number that may be called, too, and returns itself: ``x.nbytes`` and ``x.nbytes()``."""

    __slots__ = ()

    def __call__(self) -> int:
        return int(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)


# pyi: class CallableAttribute(Generic[_T_co]):
cdef class CallableAttribute:
    """The descriptor of an attribute whose value, called, returns itself.

    ``x.name()`` may then read the value and leave out the call: CPython calls the descriptor with
    `x`, as it does for a method.
    """

    # pyi: overload (obj: None, cls: type[Any] | None = None) -> Self
    # pyi: overload (obj: Any, cls: type[Any] | None = None) -> _T_co
    def __get__(self, obj, cls):
        if obj is None:
            return self
        _require_owner(self, obj)
        return self.read_attribute(obj)

    def __set__(self, obj, value):
        # (torch.compile takes what has no __set__ for a plain function)
        raise AttributeError(
            f"The attribute {self.__name__!r} of {self.owner.__name__!r} objects cannot be set.")

    @property
    def __doc__(self):
        return self.doc

    @property
    def __objclass__(self) -> type[Any]:
        return self.owner

    def __repr__(self):
        return f"<attribute {self.__name__!r} of {self.owner.__name__!r} objects>"


cdef inline int _require_owner(CallableAttribute self, object obj) except -1:
    if Py_TYPE(obj) != self.owner_type and not isinstance(obj, <type>self.owner):
        raise TypeError(
            f"The attribute {self.__name__!r} is one of {self.owner.__name__!r} objects, not of "
            f"{type(obj).__name__!r} objects.")
    return 0


cdef object _call(PyObject* descriptor, PyObject** args, size_t nargsf, PyObject* names):
    self = <CallableAttribute>descriptor
    if unlikely(PyVectorcall_NARGS(nargsf) != 1 or names != NULL):
        raise TypeError(f"{self.__name__}() takes no arguments.")
    _require_owner(self, <object>args[0])
    return self.read(<object>args[0])


cdef CallableAttribute callable_attribute(
    object owner, str name, str doc, attribute_reader read, attribute_reader read_attribute,
):
    """Return the attribute `name` of the compiled class `owner`.

    `read(x)` returns the value of ``x.name()``, `read_attribute(x)` that of ``x.name``.
    """
    cdef CallableAttribute self = CallableAttribute.__new__(CallableAttribute)
    self.vectorcall = _call
    self.read = read
    self.read_attribute = read_attribute
    self.owner = owner
    self.owner_type = <PyTypeObject*><PyObject*>owner
    self.__name__ = name
    self.doc = doc
    return self


cdef CallableAttribute _layout = CallableAttribute.__new__(CallableAttribute)
make_method_descriptor(
    CallableAttribute, <char*>&_layout.vectorcall - <char*><PyObject*>_layout)
forbid_calling(CallableAttribute)

# pyi: _T_co = TypeVar("_T_co", covariant=True)
