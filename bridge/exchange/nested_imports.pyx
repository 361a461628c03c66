# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The objects whose code runs while they are imported: none is imported inside of itself.

Importers and protocols are code of any library, and may call the bridge. A thread keeps the objects
whose code is running: none of them is imported once more, and there are MAX_NESTED at most. Where
so many were reached, each further import inside the outermost one is refused, too: code that
catches the error and tries again would double its time at each level.
"""

import threading

cdef enum:
    MAX_NESTED = 32


class _Running(threading.local):
    """The objects whose code runs in this thread, the outermost first."""

    def __init__(self):
        self.objects = []
        self.too_many = False


cdef object _running = _Running()


cdef Py_ssize_t depth() except -1:
    """Return how many objects' code is running."""
    return len(<list>_running.objects)


cdef int begin(object x) except -1:
    """Note that code of `x` is called; `end` ends it.

    Raises BufferError: it is running already, or that of too many others is.
    """
    cdef list objects = _running.objects
    if not objects:
        _running.too_many = False
    for one in objects:
        if one is x:
            raise BufferError(
                f"While this {type(x).__name__} is imported, its own code gives it to the bridge "
                "again. Give the bridge what has the memory; an importer may return its argument, "
                "to leave it to its own protocols.")
    if len(objects) >= MAX_NESTED or _running.too_many:
        _running.too_many = True
        raise BufferError(
            f"While a {type(objects[0]).__name__} is imported, its code gives the bridge another "
            f"object, whose code gives it another, {MAX_NESTED} times.")
    objects.append(x)
    return 0


cdef int end() except -1:
    """Forget the object that began last."""
    (<list>_running.objects).pop()
    return 0


cdef int end_to(Py_ssize_t n) except -1:
    """Forget all objects but the first `n`."""
    del (<list>_running.objects)[n:]
    return 0
