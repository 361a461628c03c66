/* SPDX-License-Identifier: Apache-2.0
 *
 * Included before the code that Cython generates; see setup.py.
 *
 * A critical section of an object whose lock the innermost section of this thread holds already: as
 * in CPython 3.14, it takes no lock. In CPython 3.13 without the GIL it waits for its own lock, and
 * so lets other threads into the outer section, where they see a change that is half made.
 */
#ifndef BRIDGE_NESTED_SECTIONS_H
#define BRIDGE_NESTED_SECTIONS_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#if defined(Py_GIL_DISABLED) && PY_VERSION_HEX < 0x030E0000

/* The two lowest bits of PyThreadState.critical_section: 1, the section is suspended; 2, it is a
 * PyCriticalSection2. */
static inline int bridge_is_locked_here(PyMutex *lock) {
    uintptr_t tagged = PyThreadState_GetUnchecked()->critical_section;
    PyCriticalSection *innermost = (PyCriticalSection *)(tagged & ~(uintptr_t)3);
    if (innermost == NULL || (tagged & 1)) return 0;
    return innermost->_cs_mutex == lock ||
           ((tagged & 2) && ((PyCriticalSection2 *)innermost)->_cs_mutex2 == lock);
}

static inline void bridge_section_begin(PyCriticalSection *section, PyObject *owner) {
    if (bridge_is_locked_here(&owner->ob_mutex))
        section->_cs_mutex = NULL;
    else
        PyCriticalSection_Begin(section, owner);
}

static inline void bridge_section_end(PyCriticalSection *section) {
    if (section->_cs_mutex != NULL) PyCriticalSection_End(section);
}

#define PyCriticalSection_Begin bridge_section_begin
#define PyCriticalSection_End bridge_section_end

#endif
#endif
