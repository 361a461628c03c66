# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""One walk through a tree that makes a new one: for conversions, and to list and replace leaves.

An object that occurs again is not visited again: its first result is used. The
table of objects is one of addresses, whose objects it keeps; the path is a chain of frames on the
stack, which costs nothing until somebody asks for it.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uintptr_t

from bridge.c10.python_api cimport Py_TYPE, drop_reference

from bridge.exchange.protocols import class_has_door, object_has_door
from bridge.trees.leaf_errors import at
from bridge.trees.nodes import BUFFERS, SCALARS, is_single, is_tree, key_text, keeps
from bridge.trees.nodes import node_of

cdef extern from "Python.h":
    PyTypeObject PyDict_Type
    PyTypeObject PyList_Type
    PyTypeObject PyTuple_Type
    bint PyDict_Next(object, Py_ssize_t*, PyObject**, PyObject**)
    int PyDict_SetItem(object, object, object) except -1
    list PyList_AsList "PySequence_List"(object)

cdef enum:      # steps of a path
    INDEX = 0
    KEY = 1
    STEP = 2    # a tuple of its text and its key, from a Node

cdef enum:      # kinds of objects, by their class
    UNKNOWN = 0     # of which each object is asked
    TENSOR = 1
    SCALAR = 2
    KEPT = 3
    LIST = 4
    TUPLE = 5
    DICT = 6
    NODE = 7
    FIRST = 64      # entries of a new table
    DEEPEST = 1000  # containers around each other; each takes some of the stack

# class -> kind, for classes that are never deleted and of which nothing else can be said.
cdef dict _KINDS = {
    list: LIST, tuple: TUPLE, dict: DICT,
    **{cls: SCALAR for cls in (*SCALARS, bool)},
    **{cls: KEPT for cls in BUFFERS},
}


# pyi: class Visitor:
cdef class Visitor:
    """Walks through a tree, calls a method for each leaf, and makes a tree of the results."""

    def __cinit__(self):
        self.entries = NULL
        self.mask = -1
        self.used = self.depth = 0
        self.top = NULL
        self.last = NULL
        self.classes = {}

    def __dealloc__(self):
        cdef Py_ssize_t i
        cdef Entry* entries = self.entries
        self.entries = NULL
        if entries != NULL:
            for i in range(self.mask + 1):
                if entries[i].key != NULL:
                    drop_reference(entries[i].key)
                if entries[i].value != NULL:
                    drop_reference(entries[i].value)
            PyMem_Free(entries)

    cdef object leaf(self, object x):
        """Return the substitute for a leaf with a tensor's memory; called once for each object."""
        raise NotImplementedError

    cdef object scalar(self, object x):
        """Return the substitute for a number, a string, bytes, or None; called where it occurs."""
        return x

    cdef object kept_leaf(self, object x):
        """Return the substitute for another leaf that stays; called once for each object."""
        return x

    cdef object visit(self, object x):
        """Return the substitute for any part of the tree."""
        cdef PyTypeObject* cls = Py_TYPE(x)
        if cls == self.last:
            return self._leaf_once(x)
        kind = _KINDS.get(type(x))
        if kind is None:
            kind = self._kind(x)
        return self._other(x, kind)

    cdef object _other(self, object x, int kind):
        cdef Entry* entry
        if kind == SCALAR:
            return self.scalar(x)
        if kind == TENSOR:
            self.last = Py_TYPE(x)
            return self._leaf_once(x)
        if kind == UNKNOWN:
            if object_has_door(x):
                return self._leaf_once(x)
            kind = KEPT
        if kind != KEPT:
            return self._container(x, kind)
        entry = self._find(<PyObject*>x)
        if entry != NULL:
            return <object>entry.value
        value = self.kept_leaf(x)
        entry = self._put(x)
        Py_INCREF(value)
        entry.value = <PyObject*>value
        return value

    cdef int _kind(self, object x) except -1:
        """Return the kind of a class as it is during this walk."""
        cls = type(x)
        kind = self.classes.get(cls)
        if kind is None:
            if is_single(cls):
                kind = TENSOR
            elif is_tree(x):
                kind = NODE
            elif keeps(x):
                kind = SCALAR if isinstance(x, SCALARS) else KEPT
            else:
                kind = TENSOR if class_has_door(x) else UNKNOWN
            self.classes[cls] = kind
        return kind

    cdef object _leaf_once(self, object x):
        cdef Entry* entry = self._find(<PyObject*>x)
        if entry != NULL:
            return <object>entry.value
        try:
            value = self.leaf(x)
        except Exception as error:
            located = at(self.path(), error)
            if located is error:
                raise
            raise located from error
        entry = self._put(x)
        Py_INCREF(value)
        entry.value = <PyObject*>value
        return value

    cdef object _container(self, object x, int kind):
        cdef Entry* entry = self._find(<PyObject*>x)
        if entry != NULL:
            if entry.value == NULL:
                path = self.path()
                raise ValueError(
                    f"at {path}: the {type(x).__qualname__} contains itself, and a tree has an "
                    "end. Take out one of the two.")
            return <object>entry.value
        self._put(x)
        if self.depth == DEEPEST:
            raise RecursionError(
                f"The tree is more than {DEEPEST} containers deep. Make it flatter first.")
        self.depth += 1
        if kind == LIST:
            value = self._list(x)
        elif kind == DICT:
            value = self._dict(x)
        elif kind == TUPLE:
            value = self._tuple(x)
        else:
            value = self._node(x)
        self.depth -= 1
        entry = self._find(<PyObject*>x)    # the table may have grown
        Py_INCREF(value)
        entry.value = <PyObject*>value
        return value

    cdef object _list(self, list x):
        cdef Frame frame
        cdef list out = PyList_AsList(x)
        cdef Py_ssize_t i
        frame.outer, frame.kind = self.top, INDEX
        self.top = &frame
        for i in range(len(out)):
            frame.index = i
            out[i] = self.visit(out[i])
        self.top = frame.outer
        return out

    cdef object _tuple(self, tuple x):
        cdef Frame frame
        cdef list out = PyList_AsList(x)
        cdef bint same = True
        cdef Py_ssize_t i
        frame.outer, frame.kind = self.top, INDEX
        self.top = &frame
        for i in range(len(out)):
            frame.index = i
            value = self.visit(x[i])
            if value is not x[i]:
                same = False
                out[i] = value
        self.top = frame.outer
        return x if same else tuple(out)

    cdef object _dict(self, dict x):
        cdef Frame frame
        cdef dict out = x.copy()
        cdef Py_ssize_t position = 0
        cdef PyObject* key
        cdef PyObject* value
        frame.outer, frame.kind = self.top, KEY
        self.top = &frame
        # (no other code has `out`, and its keys stay: their values may be replaced meanwhile)
        while PyDict_Next(out, &position, &key, &value):
            frame.key = key
            old = <object>value
            new = self.visit(old)
            if new is not old:
                PyDict_SetItem(out, <object>key, new)
        self.top = frame.outer
        return out

    cdef object _node(self, object x):
        cdef Frame frame
        cdef Py_ssize_t i
        try:
            node = node_of(x)
        except Exception as error:
            raise at(self.path(), error)
        children, steps = node.children, node.steps
        values = []
        frame.outer, frame.kind = self.top, STEP
        self.top = &frame
        for i in range(len(children)):
            step = steps[i]
            frame.key = <PyObject*>step     # `steps` keeps it
            values.append(self.visit(children[i]))
        self.top = frame.outer
        try:
            return node.rebuild(values)
        except Exception as error:
            raise at(self.path(), error)

    cdef Entry* _find(self, PyObject* key) noexcept:
        """Return the entry of an object; NULL if it was not seen."""
        cdef Py_ssize_t i
        if self.entries == NULL:
            return NULL
        i = _hash(key) & self.mask
        while self.entries[i].key != NULL:
            if self.entries[i].key == key:
                return &self.entries[i]
            i = (i + 1) & self.mask
        return NULL

    cdef Entry* _put(self, object key) except NULL:
        """Return a new entry for an object that has none."""
        cdef Py_ssize_t i
        if self.used * 2 >= self.mask:
            self._grow()
        i = _hash(<PyObject*>key) & self.mask
        while self.entries[i].key != NULL:
            i = (i + 1) & self.mask
        Py_INCREF(key)
        self.entries[i].key = <PyObject*>key
        self.used += 1
        return &self.entries[i]

    cdef int _grow(self) except -1:
        cdef Py_ssize_t n = FIRST if self.entries == NULL else (self.mask + 1) * 4
        cdef Entry* entries = <Entry*>PyMem_Calloc(n, sizeof(Entry))
        cdef Py_ssize_t i, j
        if entries == NULL:
            raise MemoryError(f"There is no memory for a table of {n // 2} leaves.")
        if self.entries != NULL:
            for i in range(self.mask + 1):
                if self.entries[i].key != NULL:
                    j = _hash(self.entries[i].key) & (n - 1)
                    while entries[j].key != NULL:
                        j = (j + 1) & (n - 1)
                    entries[j] = self.entries[i]
            PyMem_Free(self.entries)
        self.entries = entries
        self.mask = n - 1
        return 0

    cdef str path(self):
        """Return the path of the part that is visited now."""
        cdef Frame* frame = self.top
        cdef list parts = []
        while frame != NULL:
            if frame.kind == INDEX:
                parts.append(f"[{frame.index}]")
            elif frame.kind == KEY:
                parts.append(key_text(<object>frame.key))
            else:
                parts.append((<tuple>frame.key)[0])
            frame = frame.outer
        parts.reverse()
        return "".join(parts)

    cdef tuple keys(self):
        """Return the keys, indices and names of the path of the part that is visited now."""
        cdef Frame* frame = self.top
        cdef list parts = []
        while frame != NULL:
            if frame.kind == INDEX:
                parts.append(frame.index)
            elif frame.kind == KEY:
                parts.append(<object>frame.key)
            else:
                parts.append((<tuple>frame.key)[1])
            frame = frame.outer
        parts.reverse()
        return tuple(parts)


cdef inline Py_ssize_t _hash(PyObject* key) noexcept:
    cdef uintptr_t address = <uintptr_t>key
    return <Py_ssize_t>((address >> 4) ^ (address >> 12))
