/* SPDX-License-Identifier: Apache-2.0
 *
 * Included before the code that Cython generates; see setup.py.
 *
 * When the list of a comprehension cannot grow, the code of Cython 3.3.1 releases the item twice: in
 * __Pyx_ListComp_AppendAndDecref, and where the comprehension ends. So there a failure adds a
 * reference. Other versions have no function of that name.
 */
#ifndef BRIDGE_LIST_APPEND_H
#define BRIDGE_LIST_APPEND_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>
#include <string.h>

static inline int bridge_list_append(PyObject *list, PyObject *item, const char *caller) {
    int result = PyList_Append(list, item);
    if (result < 0 && strcmp(caller, "__Pyx_ListComp_AppendAndDecref") == 0) Py_INCREF(item);
    return result;
}

#define PyList_Append(list, item) bridge_list_append((list), (item), __func__)

#endif
