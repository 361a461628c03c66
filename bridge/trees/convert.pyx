# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Conversion of all leaves of a tree, each as a tensor alone is converted.

All or nothing: leaves that are used up by their conversion, DLPack capsules, come last, and an
audit records the conversions when all have succeeded.
"""

from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_IsValid

from bridge.c10.reports cimport is_observed, outermost, run_observed
from bridge.single cimport exporter_of, numpy_of, torch_of, wrapper_of
from bridge.trees.walk cimport Visitor

from bridge.c10.reports import record_together

cdef enum:
    TO_OTHER = 0
    TO_TORCH = 1
    TO_NUMPY = 2
    TO_AT = 3
    TO_CAFFE2 = 4

cdef dict _KINDS = {"torch": TO_TORCH, "numpy": TO_NUMPY, "at": TO_AT, "caffe2": TO_CAFFE2}


cdef class _Converting(Visitor):
    cdef int kind
    cdef bint writable, readonly, observed, consumes, has_capsules
    cdef object export, copy
    cdef str call, target

    cdef object leaf(self, object x):
        if not self.consumes and PyCapsule_CheckExact(x) and _is_unused(x):
            self.has_capsules = True
            return x
        if self.observed:
            return run_observed(self.call, x, self.target, _one, (self, x))
        return self.one(x)

    cdef object one(self, object x):
        if self.kind == TO_TORCH:
            return torch_of(x, self.copy, self.writable, self.readonly)
        if self.kind == TO_NUMPY:
            return numpy_of(x, self.copy)
        if self.kind == TO_OTHER:
            return self.export(x, self.copy)
        return wrapper_of(x, self.kind == TO_CAFFE2, self.copy)


cdef class _Consuming(Visitor):
    """Converts the capsules that are left in a tree."""

    cdef _Converting converting

    cdef object leaf(self, object x):
        return self.converting.leaf(x) if PyCapsule_CheckExact(x) else x


cdef bint _is_unused(object capsule):
    return PyCapsule_IsValid(capsule, "dltensor_versioned") \
        or PyCapsule_IsValid(capsule, "dltensor")


def _one(_Converting visitor, x):
    return visitor.one(x)


def _converted(_Converting visitor, tree):
    cdef _Consuming rest
    out = visitor.visit(tree)
    if visitor.has_capsules:
        visitor.consumes = True
        rest = _Consuming()
        rest.converting = visitor
        out = rest.visit(out)
    return out


def convert_tree(
    tree: Any,
    str name,
    str call,
    str target,
    copy: bool | None,
    bint writable,
    bint readonly,
    export: Callable[[Any, bool | None], Any] | None = None,
) -> Any:
    """Return a tree of the same containers whose tensors are tensors of the library `name`.

    `call`, `target`: the public function and the class of its result, for audits. `export`: used in
    place of the library's conversion; ``export(x, copy)``.

    Raises the error of the conversion of a leaf, with the path of the leaf. ValueError: an unknown
    name, or a container that contains itself.
    """
    cdef _Converting visitor = _Converting()
    visitor.kind = TO_OTHER if export is not None else _KINDS.get(name, TO_OTHER)
    visitor.copy, visitor.writable, visitor.readonly = copy, writable, readonly
    visitor.call, visitor.target = call, target
    if visitor.kind == TO_OTHER:
        visitor.export = exporter_of(name) if export is None else export
    if is_observed() and outermost():
        visitor.observed = True
        return record_together(_converted, visitor, tree)
    return _converted(visitor, tree)
