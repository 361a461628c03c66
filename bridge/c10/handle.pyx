# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The field that both tensor classes have, for code below them that reads it."""

cimport cython

from bridge.c10.tensor_impl cimport undefined_impl


@cython.freelist(128)
cdef class Handle:
    """A reference to a TensorImpl: the layout of a wrapper, without its methods."""

    def __cinit__(self):
        self.impl = undefined_impl
