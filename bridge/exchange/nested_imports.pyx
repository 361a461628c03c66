# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The objects whose code runs while they are imported: none is imported inside of itself.

Importers and protocols are code of any library, and may call the bridge. A thread keeps the objects
whose code is running: none of them is imported once more, and there are MAX_NESTED at most. Where
so many were reached, each further import inside the outermost one is refused, too: code that
catches the error and tries again would double its time at each level.
"""

from cpython.object cimport PyObject

cdef extern from *:
    """
    enum { MAX_NESTED = 32 };
    /* Of each thread: the objects whose code runs, the outermost first, which are borrowed from
       their callers, and whether there were too many. They take no memory that may be lacking. */
    static _Thread_local PyObject *bridge_running[MAX_NESTED];
    static _Thread_local Py_ssize_t bridge_n_running = 0;
    static _Thread_local int bridge_too_many = 0;
    """
    enum: MAX_NESTED
    PyObject** running "bridge_running"
    Py_ssize_t n_running "bridge_n_running"
    bint too_many "bridge_too_many"


cdef Py_ssize_t depth() noexcept:
    """Return how many objects' code is running."""
    return n_running


cdef int begin(object x) except -1:
    """Note that code of `x` is called, which the caller keeps until `end`.

    Raises BufferError: it is running already, or that of too many others is.
    """
    global n_running, too_many
    cdef Py_ssize_t i
    if n_running == 0:
        too_many = False
    for i in range(n_running):
        if running[i] == <PyObject*>x:
            raise BufferError(
                f"While this {type(x).__name__} is imported, its own code gives it to the bridge "
                "again. Give the bridge what has the memory; an importer may return its argument, "
                "to leave it to its own protocols.")
    if n_running >= MAX_NESTED or too_many:
        too_many = True
        raise BufferError(
            f"While a {type(<object>running[0]).__name__} is imported, its code gives the bridge "
            f"another object, whose code gives it another, {MAX_NESTED} times.")
    running[n_running] = <PyObject*>x
    n_running += 1
    return 0


cdef int end() noexcept:
    """Forget the object that began last."""
    global n_running
    n_running -= 1
    return 0


cdef int end_to(Py_ssize_t n) noexcept:
    """Forget all objects but the first `n`."""
    global n_running
    n_running = n
    return 0
