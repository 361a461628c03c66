# SPDX-License-Identifier: Apache-2.0
cdef bint is_neutral() except -1
cdef bint is_observed_now() except -1
