# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Instantiating operators whose class has been looked up, as `Operator.__init__` does but in C."""

from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from bridge.c10.python_api cimport find_in
from bridge.c10.slots cimport new_instance
from bridge.caffe2.execution.operator_core cimport DefinitionCore, OperatorCore

from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.blob_table import find_blob, put_new

cdef object _Blob = Blob


cdef OperatorCore instantiate(DefinitionCore definition, object table, dict blobs, list new):
    """Return the operator on the blobs of `table`, which are `blobs`; None if an input is missing.

    The names of the blobs that it creates are appended to `new`.
    """
    cdef OperatorCore operator
    cdef tuple inputs = None, outputs = None
    cdef Py_ssize_t i
    cdef object blob, name
    if definition.plain:    # the class has Operator's own __init__
        inputs = PyTuple_New(len(definition.inputs))
        for i in range(len(definition.inputs)):
            blob = find_in(blobs, definition.inputs[i])
            if blob is None:
                return None
            Py_INCREF(blob)
            PyTuple_SET_ITEM(inputs, i, blob)
        outputs = PyTuple_New(len(definition.outputs))
    for i in range(len(definition.outputs)):
        name = definition.outputs[i]
        blob = find_in(blobs, name)
        if blob is None:
            new.append(name)
            if outputs is None:
                continue
            blob = put_new(blobs, name, _Blob())
        if outputs is not None:
            Py_INCREF(blob)
            PyTuple_SET_ITEM(outputs, i, blob)
    if not definition.plain:
        return <OperatorCore?>definition.cls(definition, table)
    operator = <OperatorCore?>new_instance(definition.cls, ())
    operator._definition = definition
    operator._workspace = table
    operator._inputs = inputs
    operator._outputs = outputs
    return operator


def instantiate_in(
    DefinitionCore definition not None, table: BlobTable, list new not None: list[str]
) -> Any:
    """Return the operator of a definition whose class has been looked up, on blobs of `table`.

    The names of the blobs that it creates are appended to `new`. Raises EnforceNotMet, also a
    KeyError: an input is missing; or what the class's ``__init__`` raises.
    """
    cdef OperatorCore created = None
    if table._parent is None:
        created = instantiate(definition, table, table._blobs, new)
        if created is not None:
            return created
    for name in definition.outputs:
        if find_blob(table, name) is None:
            new.append(name)
    return <OperatorCore?>definition.cls(definition, table)
