# SPDX-License-Identifier: Apache-2.0
cpdef bint is_neutral() except -1
cpdef bint is_observed() except -1
