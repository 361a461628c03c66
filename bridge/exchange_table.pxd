# SPDX-License-Identifier: Apache-2.0
cdef object new_exchange_table(bint caffe2)
cdef int set_class(bint caffe2, object cls) except -1
