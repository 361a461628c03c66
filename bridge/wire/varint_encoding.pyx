# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Encoding of arrays as packed varints: C only, without Python objects or the GIL.

As in `varint_decoding`, there is no branch per element, and nothing is written out of bounds if the
array changes after its encoded size was computed.

Follows the encoding of protobuf: int32 and enums are sign-extended to 64 bits, so that negative
numbers take ten bytes.
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint64_t

from bridge.wire.varint_decoding cimport BOOL, I8, I16, I32, U8, U16, Kind
from bridge.wire.eight_bytes cimport HIGH, LONGEST, clz, count_high, element, load, store


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


cdef uint8_t* _write_short(uint8_t* out, const uint8_t* end, uint64_t value) noexcept nogil:
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
        out = _write_short(out, end, <uint64_t><int64_t>values[i])
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
