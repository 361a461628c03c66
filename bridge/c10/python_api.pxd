# SPDX-License-Identifier: Apache-2.0
"""CPython's C API where Cython's `cpython` package lacks a function, or checks at a cost."""

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object)
    PyObject* PyErr_Occurred()
    PyObject* PyList_GET_ITEM(list, Py_ssize_t)     # a borrowed reference
    void drop_reference "Py_DECREF"(PyObject*) noexcept nogil

cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED      /* where a borrowed reference may be gone when it is used */
    static CYTHON_UNUSED PyObject *bridge_find(PyObject *dict, PyObject *key) {
        PyObject *found;
        int answer = PyDict_GetItemRef(dict, key, &found);
        return answer > 0 ? found : answer < 0 ? NULL : Py_NewRef(Py_None);
    }
    #else
    static CYTHON_UNUSED CYTHON_INLINE PyObject *bridge_find(PyObject *dict, PyObject *key) {
        PyObject *found = PyDict_GetItemWithError(dict, key);
        if (found == NULL) {
            if (PyErr_Occurred()) return NULL;
            found = Py_None;
        }
        return Py_NewRef(found);
    }
    #endif
    """
    # Return the value of a key of a dict without None among its values; None: the key is missing.
    object find_in "bridge_find"(dict, object)

# BRIDGE_LOAD(owner, field): a new reference to a field of a compiled class that another thread may
# replace. Without the GIL a field that is replaced is read and written in a critical section of its
# object, by this, by `with cython.critical_section(...)`, or as a property that Cython made.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    static CYTHON_UNUSED PyObject *bridge_load(PyObject *owner, PyObject **field) {
        PyObject *found;
        Py_BEGIN_CRITICAL_SECTION(owner);
        found = Py_NewRef(*field);
        Py_END_CRITICAL_SECTION();
        return found;
    }
    #define BRIDGE_LOAD(owner, field) bridge_load((PyObject *)(owner), (PyObject **)&(owner)->field)
    #else
    #define BRIDGE_LOAD(owner, field) Py_NewRef((PyObject *)(owner)->field)
    #endif
    """

# One word that another thread may write meanwhile. Without the GIL a number that is read outside of
# the critical sections in which it changes is read and written by these, and so is a number of the
# process; what belongs to one thread, such as a new object, need not be. On x86 they are plain
# instructions.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_WORD(place) __atomic_load_n(place, __ATOMIC_RELAXED)
    #define BRIDGE_SET_WORD(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)
    #define BRIDGE_PUBLISHED(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
    #define BRIDGE_PUBLISH(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
    #else
    #define BRIDGE_WORD(place) (*(place))
    #define BRIDGE_SET_WORD(place, value) ((void)(*(place) = (value)))
    #define BRIDGE_PUBLISHED(place) (*(place))
    #define BRIDGE_PUBLISH(place, value) ((void)(*(place) = (value)))
    #endif
    """
    int word "BRIDGE_WORD"(const int*) noexcept nogil
    uint8_t word8 "BRIDGE_WORD"(const uint8_t*) noexcept nogil
    int32_t word32 "BRIDGE_WORD"(const int32_t*) noexcept nogil
    int64_t word64 "BRIDGE_WORD"(const int64_t*) noexcept nogil
    void* pointer "BRIDGE_WORD"(void**) noexcept nogil
    void set_word "BRIDGE_SET_WORD"(int*, int) noexcept nogil
    void set_word32 "BRIDGE_SET_WORD"(int32_t*, int32_t) noexcept nogil
    void set_word64 "BRIDGE_SET_WORD"(int64_t*, int64_t) noexcept nogil
    void set_pointer "BRIDGE_SET_WORD"(void**, void*) noexcept nogil
    # The same; what was written before `publish` is there for who reads the word by `published`.
    int published "BRIDGE_PUBLISHED"(const int*) noexcept nogil
    void* published_pointer "BRIDGE_PUBLISHED"(void**) noexcept nogil
    void publish "BRIDGE_PUBLISH"(int*, int) noexcept nogil
    void publish_pointer "BRIDGE_PUBLISH"(void**, void*) noexcept nogil

# Whether threads run at once; a constant of the compiler.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_FREE_THREADED 1
    #else
    #define BRIDGE_FREE_THREADED 0
    #endif
    """
    bint FREE_THREADED "BRIDGE_FREE_THREADED"

# lock_object(owner) ... unlock_object(): a critical section that costs nothing with the GIL, where
# `with cython.critical_section` takes 40 ns. Nothing between the two raises or returns.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_LOCK(owner) \\
        PyCriticalSection bridge_section; \\
        PyCriticalSection_Begin(&bridge_section, (PyObject *)(owner))
    #define BRIDGE_UNLOCK() PyCriticalSection_End(&bridge_section)
    #else
    #define BRIDGE_LOCK(owner) ((void)0)
    #define BRIDGE_UNLOCK() ((void)0)
    #endif
    """
    void lock_object "BRIDGE_LOCK"(object owner) noexcept
    void unlock_object "BRIDGE_UNLOCK"() noexcept

# Objects that live as long as the process and that all threads use. Without the GIL a reference to
# one is counted in memory that the processors pass to each other: two threads that import torch
# tensors ran no faster than one.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_IMMORTAL(one) Py_SET_REFCNT((PyObject *)(one), PY_SSIZE_T_MAX)
    #else
    #define BRIDGE_IMMORTAL(one) ((void)0)
    #endif
    """
    # Keep an object that this thread has created for good, without counting references to it.
    void make_immortal "BRIDGE_IMMORTAL"(object one) noexcept

# A flag that one thread at a time sets; with the GIL no other runs between the two steps.
cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    #define BRIDGE_CLAIM(flag) (!__atomic_exchange_n(flag, 1, __ATOMIC_ACQ_REL))
    #define BRIDGE_LET_GO(flag) __atomic_store_n(flag, 0, __ATOMIC_RELEASE)
    #define BRIDGE_ADD_TO(number, n) __atomic_add_fetch(number, n, __ATOMIC_ACQ_REL)
    #else
    #define BRIDGE_CLAIM(flag) (*(flag) ? 0 : (*(flag) = 1))
    #define BRIDGE_LET_GO(flag) ((void)(*(flag) = 0))
    #define BRIDGE_ADD_TO(number, n) (*(number) += (n))
    #endif
    """
    # Set a flag; return whether it was not set before.
    bint claim "BRIDGE_CLAIM"(int* flag) noexcept
    void let_go "BRIDGE_LET_GO"(int* flag) noexcept
    # Add to a count of int64; return the sum.
    int64_t add_to "BRIDGE_ADD_TO"(int64_t* number, int64_t n) noexcept

cdef enum:
    RELEASE_GIL_NBYTES = 1 << 16    # copying at least this many bytes is worth releasing the GIL


# A C function called by pointer returns a new reference, or leaves an exception pending in the
# thread. Where it is declared `noexcept`, Cython does not check which.

# Raise the pending exception.
cdef inline int raise_pending() except -1:
    return -1


# Clear the pending exception and return it; None if there is none. Raises one that is not an
# Exception, such as KeyboardInterrupt.
cdef inline object take_pending():
    if PyErr_Occurred() == NULL:
        return None
    try:
        raise_pending()
    except Exception as error:
        return error


# Return the object of a new reference; raise the pending exception if it is NULL.
cdef inline object owned(PyObject* reference):
    if reference == NULL:
        raise_pending()
    found = <object>reference
    drop_reference(reference)       # <object> has added one
    return found
