# SPDX-License-Identifier: Apache-2.0
# `cloned_void`, the result of functions that are compiled twice: for every processor, and for those
# with AVX2, whose vectors are twice as long. The loader takes the one for its processor. Products
# are not fused with sums in either, so both have the same results. What such a function calls is an
# inline `inlined_void`, to be compiled as it is.

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
      #define cloned_void __attribute__((target_clones("avx2", "default"))) void
    #else
      #define cloned_void void
    #endif
    #if defined(__GNUC__)
      #define inlined_void __attribute__((always_inline)) void
    #else
      #define inlined_void void
    #endif
    """
    ctypedef void cloned_void
    ctypedef void inlined_void
