# SPDX-License-Identifier: Apache-2.0
cdef bint is_neutral() except -1
