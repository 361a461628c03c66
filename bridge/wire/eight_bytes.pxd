# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcpy

# Eight bytes as one integer, lowest byte first, as on x86-64 and AArch64.
cdef extern from *:
    """
    #define BRIDGE_HIGH 0x8080808080808080ULL
    #define BRIDGE_LOW7 0x7F7F7F7F7F7F7F7FULL
    #define BRIDGE_ONES 0x0101010101010101ULL
    #if defined(_MSC_VER) && !defined(__clang__)    /* not tried */
    #include <intrin.h>
    static __inline int bridge_ctz(uint64_t word) {
        unsigned long at;
        _BitScanForward64(&at, word);
        return (int)at;
    }
    static __inline int bridge_clz(uint64_t word) {
        unsigned long at;
        _BitScanReverse64(&at, word);
        return 63 - (int)at;
    }
    #else
    #define bridge_ctz __builtin_ctzll
    #define bridge_clz __builtin_clzll
    #endif
    """
    const uint64_t HIGH "BRIDGE_HIGH"   # the bit that is set where another byte follows
    const uint64_t LOW7 "BRIDGE_LOW7"   # the other bits
    const uint64_t ONES "BRIDGE_ONES"   # a product with it sums each byte and those below
    int ctz "bridge_ctz"(uint64_t) nogil
    int clz "bridge_clz"(uint64_t) nogil

cdef enum:
    LONGEST = 10        # bytes of a varint of 64 bits

ctypedef fused element:
    uint8_t
    int8_t
    uint16_t
    int16_t
    int32_t
    int64_t

cdef inline uint64_t load(const uint8_t* at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word

cdef inline void store(uint8_t* at, uint64_t word) noexcept nogil:
    memcpy(at, &word, 8)

cdef inline int64_t count_high(const uint8_t* bytes, int64_t n) noexcept nogil:
    # Return how many bytes have the high bit set.
    cdef int64_t count = 0
    cdef int64_t i = 0
    while i + 8 <= n:
        # One bit per byte, summed into the highest byte.
        count += (((load(bytes + i) & HIGH) >> 7) * ONES) >> 56
        i += 8
    while i < n:
        count += bytes[i] >> 7
        i += 1
    return count
