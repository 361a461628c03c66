# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Decoding of packed varints into arrays: C only, without Python objects or the GIL.

A varint has seven bits in each byte, lowest first; the high bit is set where another byte follows.
Eight bytes are decoded at a time, since one at a time costs a branch misprediction per element.

Every function stays within source and destination whatever they contain. So memory that another
thread writes meanwhile yields wrong numbers, never a write out of bounds.

Follows the encoding of protobuf: a reader drops the bits that do not fit.
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

from bridge.wire.eight_bytes cimport (
    HIGH,
    LONGEST,
    LOW7,
    ONES,
    clz,
    count_high,
    ctz,
    element,
    load,
    store,
)

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
