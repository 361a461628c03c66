# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Packed varints to arrays and back: C only, no Python objects, the GIL not needed.

A varint has seven bits a byte, lowest first; the high bit says that another byte follows. Here
eight bytes are taken at a time, since a byte at a time costs a misprediction an element.

Every function stays within both the source and the destination whatever either holds, so memory
that somebody writes meanwhile gives wrong numbers at worst, never a write out of bounds.

Follows the encoding of protobuf: int32 and enums are sign-extended to 64 bits, so that negative
numbers take ten bytes; a reader drops the bits that do not fit.
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

cdef extern from *:
    int ctz "__builtin_ctzll"(uint64_t) nogil
    int clz "__builtin_clzll"(uint64_t) nogil

cdef enum:
    LONGEST = 10        # bytes of a varint of 64 bits
    BLOCK = 4096        # bytes that are looked through at once

cdef uint64_t HIGH = 0x8080808080808080UL
cdef uint64_t LOW7 = 0x7F7F7F7F7F7F7F7FUL
cdef uint64_t ONES = 0x0101010101010101UL

ctypedef fused element:
    uint8_t
    int8_t
    uint16_t
    int16_t
    int32_t
    int64_t


# Words are as they stand in memory, lowest byte first: x86-64 and AArch64 Linux are so.
cdef inline uint64_t _load(const uint8_t* at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline void _store(uint8_t* at, uint64_t word) noexcept nogil:
    memcpy(at, &word, 8)


cdef int varint_size(uint64_t value) noexcept nogil:
    # ceil(bits / 7), for 1 to 64 bits
    return ((64 - clz(value | 1)) * 9 + 64) >> 6


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


# ---------------------------------------------------------------- sizes

cdef int64_t _count_high(const uint8_t* bytes, int64_t n) noexcept nogil:
    """How many bytes have the high bit set."""
    cdef int64_t count = 0
    cdef int64_t i = 0
    while i + 8 <= n:
        # eight bits, one a byte, summed into the highest byte
        count += (((_load(bytes + i) & HIGH) >> 7) * ONES) >> 56
        i += 8
    while i < n:
        count += bytes[i] >> 7
        i += 1
    return count


cdef int64_t _size(const element* values, int64_t n) noexcept nogil:
    cdef int64_t nbytes = 0
    cdef int64_t i
    if element is uint8_t:
        return n + _count_high(values, n)
    elif element is int8_t:
        return n + 9 * _count_high(<const uint8_t*>values, n)
    elif element is uint16_t:
        for i in range(n):
            nbytes += (values[i] >= 0x80) + (values[i] >= 0x4000)
        return n + nbytes
    else:
        for i in range(n):
            nbytes += varint_size(<uint64_t><int64_t>values[i])
        return nbytes


cdef int64_t packed_size(Kind kind, const void* values, int64_t n) noexcept nogil:
    """Bytes that `n` elements take."""
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


# ---------------------------------------------------------------- writing

cdef inline uint8_t* _write_long(uint8_t* out, uint64_t value) noexcept nogil:
    """Write a varint where there are ten bytes of room, without a branch for all but nine, ten."""
    cdef int size = varint_size(value)
    cdef uint64_t word = value & 0x00FFFFFFFFFFFFFFUL
    # Spread 56 bits over eight bytes: halves of 28, quarters of 14, bytes of 7.
    word = ((word & 0x00FFFFFFF0000000UL) << 4) | (word & 0x000000000FFFFFFFUL)
    word = ((word & 0x0FFFC0000FFFC000UL) << 2) | (word & 0x00003FFF00003FFFUL)
    word = ((word & 0x3F803F803F803F80UL) << 1) | (word & 0x007F007F007F007FUL)
    if size <= 8:
        # all but the last byte go on
        _store(out, word | (HIGH & ((<uint64_t>1 << (8 * (size - 1))) - 1)))
        return out + size
    _store(out, word | HIGH)
    out[8] = (value >> 56) & 0x7F
    if size == 10:
        out[8] |= 0x80
        out[9] = 1
    return out + size


cdef uint8_t* _write_short(uint8_t* out, const uint8_t* end, uint64_t value) noexcept nogil:
    """Write a varint where there may be too little room: NULL then."""
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
            word = _load(values + i)
            if not word & HIGH:
                _store(out, word)
                out += 8
            else:
                for k in range(8):
                    # Two bytes where the high bit is set: the low seven and it, then a 1.
                    out[0] = values[i + k]
                    out[1] = 1
                    out += 1 + (values[i + k] >> 7)
            i += 8
    else:
        while i < n and out <= last:
            out = _write_long(out, <uint64_t><int64_t>values[i])
            i += 1
    while i < n:
        out = _write_short(out, end, <uint64_t><int64_t>values[i])
        if out == NULL:
            return False
        i += 1
    return out == end


cdef bint encode(
    Kind kind, const void* values, int64_t n, uint8_t* out, int64_t nbytes,
) noexcept nogil:
    """Write `n` elements into exactly `nbytes`; False where they are no longer so many."""
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


# ---------------------------------------------------------------- checking

cdef bint _has_overlong(const uint8_t* packed, int64_t nbytes) noexcept nogil:
    """Whether more than nine bytes in a row say that another follows."""
    cdef int64_t i = 0
    cdef int run = 0            # how many did so up to here
    cdef uint64_t ends
    while i + 8 <= nbytes and run < LONGEST:
        ends = ~_load(packed + i) & HIGH
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
    """Count the varints; -1 where the last is cut short or one is longer than ten bytes."""
    cdef int64_t stop = 0
    cdef int64_t begin, i
    cdef uint8_t five
    if nbytes and packed[nbytes - 1] >= 0x80:
        return -1
    while stop < nbytes:
        # What is too long may have begun in the block before.
        begin = stop - LONGEST + 1 if stop >= LONGEST else 0
        stop = stop + BLOCK if stop + BLOCK < nbytes else nbytes
        # Five in a row are rare, and looked for many bytes at a time.
        five = 0
        for i in range(begin, stop - 4):
            five |= packed[i] & packed[i + 1] & packed[i + 2] & packed[i + 3] & packed[i + 4]
        if five & 0x80 and _has_overlong(packed + begin, stop - begin):
            return -1
    return nbytes - _count_high(packed, nbytes)


# ---------------------------------------------------------------- reading

cdef inline const uint8_t* _read_long(
    const uint8_t* at, uint64_t* value,
) noexcept nogil:
    """Read a varint where there are ten bytes to read; NULL where it is longer."""
    cdef uint64_t word = _load(at)
    cdef uint64_t ends = ~word & HIGH
    cdef uint64_t within = LOW7
    if ends:
        # up to the lowest byte that is an end
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
            # bool is what the int32 in the message is, seen as a truth
            out[i] = <element>((<uint32_t>value != 0) if truth else value)
            i += 1
    return i if at == end else -1


cdef int64_t _decode_bytes(
    const uint8_t* at, const uint8_t* end, uint8_t* out, int64_t room, bint truth,
) noexcept nogil:
    """Read bytes, which take one byte or two: eight bytes of the source at a time."""
    cdef const uint8_t* last = end - LONGEST
    cdef int64_t i = 0
    cdef int64_t more
    cdef uint64_t word, after, goes_on, second, values
    cdef uint64_t carry = 0     # 0x80 where the byte before said that another follows
    cdef uint64_t plain = ~ONES if truth else HIGH
    cdef int _k
    while at <= last and i + 8 <= room:
        word = _load(at)
        if not carry and not word & plain:
            _store(out + i, word)
            at += 8
            i += 8
            continue
        after = _load(at + 1)
        goes_on = word & HIGH
        if truth or goes_on & after:
            break               # three bytes or more, which no byte is written with
        values = (word & LOW7) | (((after & ONES) << 7) & goes_on)
        second = (goes_on << 8) | carry
        for _k in range(8):
            out[i] = <uint8_t>values
            i += 1 - ((second >> 7) & 1)
            values >>= 8
            second >>= 8
        carry = goes_on >> 56
        at += 8
    if carry:
        at += 1
    more = _decode(at, end, out + i, room - i, truth)
    return more if more < 0 else i + more


cdef int64_t decode(
    Kind kind, const uint8_t* packed, int64_t nbytes, void* out, int64_t room,
) noexcept nogil:
    """Read all varints, at most `room`; give how many, -1 where there are more or a bad one."""
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
