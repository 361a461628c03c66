# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Packed varints into arrays and back: C only, without Python objects or the GIL.

A varint has seven bits in each byte, lowest first; the high bit is set where another byte follows.
Eight bytes are handled at a time, since one at a time costs a branch misprediction per element.

Every function stays within source and destination whatever they contain. So memory that another
thread writes meanwhile yields wrong numbers, never a write out of bounds.

Follows the encoding of protobuf: a reader drops the bits that do not fit, and int32 and enums are
sign-extended to 64 bits, so that negative numbers take ten bytes.
"""

from libc.stdint cimport (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)
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


# Decoding.

cdef enum:
    BLOCK = 8 * 248     # bytes that are counted at once


cdef const uint8_t* read_varint(
    const uint8_t* at, const uint8_t* end, uint64_t* value,
) noexcept nogil:
    cdef uint64_t result = 0
    cdef int shift = 0
    while at < end and shift < 7 * LONGEST:
        result |= <uint64_t>(at[0] & 0x7F) << shift
        at += 1
        if at[-1] < 0x80:
            value[0] = result
            return at
        shift += 7
    return NULL


cdef bint _has_overlong(const uint8_t* packed, int64_t nbytes) noexcept nogil:
    """Return whether ten or more bytes in a row have the high bit set."""
    cdef int64_t i = 0
    cdef int run = 0            # how many did so just before byte i
    cdef uint64_t ends
    while i + 8 <= nbytes and run < LONGEST:
        ends = ~load(packed + i) & HIGH
        if not ends:
            run += 8
        elif run + (ctz(ends) >> 3) >= LONGEST:
            return True
        else:
            run = clz(ends) >> 3
        i += 8
    while i < nbytes and run < LONGEST:
        run = run + 1 if packed[i] >= 0x80 else 0
        i += 1
    return run >= LONGEST


cdef int64_t count_packed(const uint8_t* packed, int64_t nbytes) noexcept nogil:
    """Return the number of varints; -1 if the last is cut short or one exceeds ten bytes."""
    cdef int64_t going_on = 0       # bytes with the high bit set
    cdef int64_t begin = 0
    cdef int64_t stop = 0
    cdef int64_t i
    cdef uint64_t bits, fours, sums, four
    if nbytes and packed[nbytes - 1] >= 0x80:
        return -1
    while stop + 8 <= nbytes:
        begin = stop
        stop = begin + BLOCK if begin + BLOCK < nbytes else nbytes & ~<int64_t>7
        sums = 0
        fours = 0
        # Written so that the compiler vectorises it. A byte of `sums` counts up to BLOCK / 8.
        for i in range(begin >> 3, stop >> 3):
            bits = (load(packed + 8 * i) & HIGH) >> 7
            sums += bits
            four = bits & (bits >> 8)
            fours |= four & (four >> 16)
        sums = (sums & 0x00FF00FF00FF00FFUL) + ((sums >> 8) & 0x00FF00FF00FF00FFUL)
        going_on += (sums * 0x0001000100010001UL) >> 48
        # Ten in a row contain four that begin at a multiple of four. This is rare; then all bytes
        # are checked, with those of the neighbouring blocks that the row may reach into.
        if fours & 0x0000000100000001UL and _has_overlong(
                packed + (begin - LONGEST if begin else 0),
                (stop + LONGEST if stop + LONGEST < nbytes else nbytes)
                - (begin - LONGEST if begin else 0)):
            return -1
    begin = stop - LONGEST if stop >= LONGEST else 0
    if _has_overlong(packed + begin, nbytes - begin):
        return -1
    return nbytes - going_on - count_high(packed + stop, nbytes - stop)


cdef inline const uint8_t* _read_long(
    const uint8_t* at, uint64_t* value,
) noexcept nogil:
    """Decode a varint if ten bytes can be read; return NULL if it is longer than that."""
    cdef uint64_t word = load(at)
    cdef uint64_t ends = ~word & HIGH
    cdef uint64_t within = LOW7
    if ends:
        # Up to the lowest byte without the high bit.
        within &= ends ^ (ends - 1)
    word &= within
    word = (word & 0x007F007F007F007FUL) | ((word & 0x7F007F007F007F00UL) >> 1)
    word = (word & 0x00003FFF00003FFFUL) | ((word & 0x3FFF00003FFF0000UL) >> 2)
    word = (word & 0x000000000FFFFFFFUL) | ((word & 0x0FFFFFFF00000000UL) >> 4)
    if ends:
        value[0] = word
        return at + (ctz(ends) >> 3) + 1
    word |= <uint64_t>(at[8] & 0x7F) << 56
    if at[8] < 0x80:
        value[0] = word
        return at + 9
    if at[9] >= 0x80:
        return NULL
    value[0] = word | (<uint64_t>at[9] << 63)
    return at + 10


cdef int64_t _decode(
    const uint8_t* at, const uint8_t* end, element* out, int64_t room, bint truth,
) noexcept nogil:
    cdef const uint8_t* last = end - LONGEST
    cdef int64_t i = 0
    cdef uint64_t value
    while i < room and at != NULL and at < end:
        at = _read_long(at, &value) if at <= last else read_varint(at, end, &value)
        if at != NULL:
            # A bool is encoded as an int32; any value but 0 is True.
            out[i] = <element>((<uint32_t>value != 0) if truth else value)
            i += 1
    return i if at == end else -1


cdef int64_t _decode_bytes(
    const uint8_t* at, const uint8_t* end, uint8_t* out, int64_t room, bint truth,
) noexcept nogil:
    """Decode values of one byte, whose varints take one or two, eight bytes at a time."""
    cdef const uint8_t* last = end - LONGEST
    cdef int64_t i = 0
    cdef int64_t more
    cdef uint64_t word, after, goes_on, values, kept, places
    cdef uint64_t carry = 0     # 0x80 if the previous byte has the high bit set
    cdef uint64_t plain = ~ONES if truth else HIGH
    cdef int k
    while at <= last and i + 8 <= room:
        word = load(at)
        if not carry and not word & plain:
            store(out + i, word)
            at += 8
            i += 8
            continue
        after = load(at + 1)
        goes_on = word & HIGH
        if truth or goes_on & after:
            break               # a varint of three bytes or more: not of a one-byte value
        values = (word & LOW7) | (((after & ONES) << 7) & goes_on)
        # A byte begins a value unless the previous one has the high bit set. The number of values
        # before it is its place; a byte that does not begin a value is overwritten by the next one.
        kept = (~((goes_on << 8) | carry) & HIGH) >> 7
        places = kept * ONES
        out[i] = <uint8_t>values
        for k in range(1, 8):
            out[i + ((places >> (8 * k - 8)) & 0xFF)] = <uint8_t>(values >> (8 * k))
        i += places >> 56
        carry = goes_on >> 56
        at += 8
    if carry:
        at += 1
    more = _decode(at, end, out + i, room - i, truth)
    return more if more < 0 else i + more


cdef int64_t decode(
    Kind kind, const uint8_t* packed, int64_t nbytes, void* out, int64_t room,
) noexcept nogil:
    """Decode all varints; return how many, or -1: more than `room`, or an invalid one."""
    cdef const uint8_t* end = packed + nbytes
    if kind == BOOL:
        return _decode_bytes(packed, end, <uint8_t*>out, room, True)
    if kind == U8:
        return _decode_bytes(packed, end, <uint8_t*>out, room, False)
    if kind == I8:
        return _decode(packed, end, <int8_t*>out, room, False)
    if kind == U16:
        return _decode(packed, end, <uint16_t*>out, room, False)
    if kind == I16:
        return _decode(packed, end, <int16_t*>out, room, False)
    if kind == I32:
        return _decode(packed, end, <int32_t*>out, room, False)
    return _decode(packed, end, <int64_t*>out, room, False)


# Encoding.

cdef int varint_size(uint64_t value) noexcept nogil:
    # ceil(bits / 7) for 1 to 64 bits.
    return ((64 - clz(value | 1)) * 9 + 64) >> 6


cdef int64_t _size(const element* values, int64_t n) noexcept nogil:
    cdef int64_t nbytes = 0
    cdef int64_t i
    if element is uint8_t:
        return n + count_high(values, n)
    elif element is int8_t:
        return n + 9 * count_high(<const uint8_t*>values, n)
    elif element is uint16_t:
        for i in range(n):
            nbytes += (values[i] >= 0x80) + (values[i] >= 0x4000)
        return n + nbytes
    else:
        for i in range(n):
            nbytes += varint_size(<uint64_t><int64_t>values[i])
        return nbytes


cdef int64_t packed_size(Kind kind, const void* values, int64_t n) noexcept nogil:
    """Return the bytes that `n` encoded elements take."""
    if kind == BOOL:
        return n
    if kind == U8:
        return _size(<const uint8_t*>values, n)
    if kind == I8:
        return _size(<const int8_t*>values, n)
    if kind == U16:
        return _size(<const uint16_t*>values, n)
    if kind == I16:
        return _size(<const int16_t*>values, n)
    if kind == I32:
        return _size(<const int32_t*>values, n)
    return _size(<const int64_t*>values, n)


cdef inline uint8_t* _write_long(uint8_t* out, uint64_t value) noexcept nogil:
    """Encode a varint where ten bytes can be written; without a branch up to eight bytes."""
    cdef int size = varint_size(value)
    cdef uint64_t word = value & 0x00FFFFFFFFFFFFFFUL
    # Spread 56 bits over eight bytes: halves of 28, quarters of 14, bytes of 7.
    word = ((word & 0x00FFFFFFF0000000UL) << 4) | (word & 0x000000000FFFFFFFUL)
    word = ((word & 0x0FFFC0000FFFC000UL) << 2) | (word & 0x00003FFF00003FFFUL)
    word = ((word & 0x3F803F803F803F80UL) << 1) | (word & 0x007F007F007F007FUL)
    if size <= 8:
        # Set the high bit of all bytes but the last.
        store(out, word | (HIGH & ((<uint64_t>1 << (8 * (size - 1))) - 1)))
        return out + size
    store(out, word | HIGH)
    out[8] = (value >> 56) & 0x7F
    if size == 10:
        out[8] |= 0x80
        out[9] = 1
    return out + size


cdef uint8_t* write_varint(uint8_t* out, const uint8_t* end, uint64_t value) noexcept nogil:
    """Encode a varint before `end`; return NULL if it does not fit."""
    while out < end:
        if value < 0x80:
            out[0] = <uint8_t>value
            return out + 1
        out[0] = <uint8_t>(value & 0x7F) | 0x80
        value >>= 7
        out += 1
    return NULL


cdef bint _encode(
    const element* values, int64_t n, uint8_t* out, const uint8_t* end,
) noexcept nogil:
    cdef const uint8_t* last = end - LONGEST
    cdef int64_t i = 0
    cdef uint64_t word
    cdef int k
    if element is uint8_t:
        while i + 8 <= n and out + 16 <= end:
            word = load(values + i)
            if not word & HIGH:
                store(out, word)
                out += 8
            else:
                for k in range(8):
                    # Two bytes if the high bit is set: the value itself, then a 1.
                    out[0] = values[i + k]
                    out[1] = 1
                    out += 1 + (values[i + k] >> 7)
            i += 8
    else:
        while i < n and out <= last:
            out = _write_long(out, <uint64_t><int64_t>values[i])
            i += 1
    while i < n:
        out = write_varint(out, end, <uint64_t><int64_t>values[i])
        if out == NULL:
            return False
        i += 1
    return out == end


cdef bint encode(
    Kind kind, const void* values, int64_t n, uint8_t* out, int64_t nbytes,
) noexcept nogil:
    """Encode `n` elements in exactly `nbytes`; return False if they do not take as many."""
    cdef const uint8_t* end = out + nbytes
    cdef int64_t i
    if kind == BOOL:
        if n != nbytes:
            return False
        for i in range(n):
            out[i] = (<const uint8_t*>values)[i] != 0
        return True
    if kind == U8:
        return _encode(<const uint8_t*>values, n, out, end)
    if kind == I8:
        return _encode(<const int8_t*>values, n, out, end)
    if kind == U16:
        return _encode(<const uint16_t*>values, n, out, end)
    if kind == I16:
        return _encode(<const int16_t*>values, n, out, end)
    if kind == I32:
        return _encode(<const int32_t*>values, n, out, end)
    return _encode(<const int64_t*>values, n, out, end)
