# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""RunOperatorOnce: an operator that was run before is neither read nor looked up again.

A message may be changed between two runs, so what is remembered is found by its bytes, which take
a tenth of a microsecond to make.
"""

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from bridge.c10.python_api cimport PyDict_GetItemWithError, Py_TYPE
from bridge.caffe2.blobs.core cimport CurrentBlobs
from bridge.caffe2.execution.operator_core cimport DefinitionCore, OperatorCore, run

from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.operator import failure
from bridge.caffe2.execution.definition import definition_of
from bridge.caffe2.execution.definition import definitions as _remembered
from bridge.caffe2.execution.registry import registry as _known
from bridge.caffe2.execution.running import run_operator
from bridge.caffe2.workspaces.workspace import found_blob, state

cdef extern from *:
    """
    static PyObject* bridge_new_instance(PyObject* cls, PyObject* no_args) {
        return ((PyTypeObject*)cls)->tp_new((PyTypeObject*)cls, no_args, NULL);
    }
    """
    object bridge_new_instance(object cls, tuple no_args)

cdef CurrentBlobs _current = state
cdef dict _definitions = _remembered
cdef object _registry = _known
cdef object _message_class = None   # our OperatorDef, once one was met
cdef object _serialized = None      # its method: found in the class, since messages look up slowly
cdef object _Blob = Blob


cdef bytes _bytes_of(object operator):
    """The bytes of an OperatorDef of our class, or of what are bytes; None for all else."""
    global _message_class, _serialized
    if type(operator) is bytes:
        return <bytes>operator
    if _message_class is None:
        if type(operator).__module__ != "bridge.caffe2.proto.caffe2_pb2":
            return None
        from bridge.caffe2.proto.caffe2_pb2 import OperatorDef
        _message_class = OperatorDef
        _serialized = OperatorDef.SerializeToString
    if type(operator) is _message_class:
        try:
            return _serialized(operator)
        except Exception:       # it lacks a required field, which `definition_of` says
            return None
    return None


def RunOperatorOnce(operator):
    """Make the operator and run it once, in the current workspace; return True.

    `operator` is an OperatorDef: a message of any class with ``SerializeToString``, or its bytes.

    Raises EnforceNotMet, from the error that was met: no OperatorDef, no such operator, no such
    input, or it failed; the error names the operator, its inputs and outputs. Outputs are then what
    they were, and those that did not exist do not.
    """
    cdef DefinitionCore definition = None
    cdef PyObject* found
    cdef bytes data = _bytes_of(operator)
    if data is not None:
        found = PyDict_GetItemWithError(_definitions, data)
        if found != NULL:
            definition = <DefinitionCore><object>found
    if definition is None:
        definition = definition_of(operator, "RunOperatorOnce")
    elif definition.generation == <long>_registry.generation:
        if _quick(definition, state.workspace, _current.blobs):
            return True
    return run_operator(state.workspace, definition, 1, "RunOperatorOnce")


cdef bint _quick(DefinitionCore definition, object workspace, dict blobs) except -1:
    """Make an operator of a class that is known, and run it.

    False, with nothing done, where an input is missing, which is for others to say.
    """
    cdef OperatorCore operator
    cdef list new = []
    try:
        operator = _made(definition, workspace, blobs, new)
        if operator is None:
            return False
        run(operator)
    except BaseException as cause:
        for name in new:
            blobs.pop(name, None)
        if isinstance(cause, Exception):
            raise failure(definition, cause, "RunOperatorOnce") from cause
        raise
    return True


cdef OperatorCore _made(DefinitionCore definition, object workspace, dict blobs, list new):
    """Make an operator of a class that is known; `new` gets the names of blobs that it makes.

    None where an input is missing.
    """
    cdef OperatorCore operator
    cdef tuple inputs = None, outputs = None
    cdef PyObject* found
    cdef Py_ssize_t i
    cdef object blob, name
    if definition.plain:    # what Operator.__init__ does
        inputs = PyTuple_New(len(definition.inputs))
        for i in range(len(definition.inputs)):
            found = PyDict_GetItemWithError(blobs, definition.inputs[i])
            if found == NULL:
                return None
            Py_INCREF(<object>found)
            PyTuple_SET_ITEM(inputs, i, <object>found)
        outputs = PyTuple_New(len(definition.outputs))
    for i in range(len(definition.outputs)):
        name = definition.outputs[i]
        found = PyDict_GetItemWithError(blobs, name)
        if found == NULL:
            new.append(name)
            if outputs is None:
                continue
            blob = blobs.setdefault(name, _Blob())
        else:
            blob = <object>found
        if outputs is not None:
            Py_INCREF(blob)
            PyTuple_SET_ITEM(outputs, i, blob)
    if not definition.plain:
        return <OperatorCore?>definition.cls(definition, workspace)
    operator = <OperatorCore?>bridge_new_instance(definition.cls, ())
    operator._definition = definition
    operator._workspace = workspace
    operator._inputs = inputs
    operator._outputs = outputs
    return operator


def made_in(DefinitionCore definition not None, workspace, list new not None):
    """Make an operator whose class was looked up, in a workspace.

    `new` gets the names of the blobs that were not there.
    """
    cdef OperatorCore made = None
    if workspace._parent is None:
        made = _made(definition, workspace, workspace._blobs, new)
        if made is not None:
            return made
    for name in definition.outputs:
        if found_blob(workspace, name) is None:
            new.append(name)
    return <OperatorCore?>definition.cls(definition, workspace)
