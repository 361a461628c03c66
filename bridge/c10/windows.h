/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sources take from GCC, Clang and POSIX, by Windows and by Microsoft's compiler (Visual
 * Studio 2022, 17.9 or newer, which has __typeof__; x86-64). Included before all else, by setup.py,
 * on Windows only. Not tried there; tests/c10/test_windows.py runs the atomic functions elsewhere.
 */
#ifndef BRIDGE_WINDOWS_H
#define BRIDGE_WINDOWS_H

#include <stddef.h>

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>
static __inline void usleep(unsigned microseconds) { Sleep((microseconds + 999) / 1000); }
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>

#define _Thread_local __declspec(thread)
#define __thread __declspec(thread)
#define __builtin_popcountll(bits) ((int)__popcnt64(bits))

#define __ATOMIC_RELAXED 0
#define __ATOMIC_ACQUIRE 2
#define __ATOMIC_RELEASE 3
#define __ATOMIC_ACQ_REL 4
#define __ATOMIC_SEQ_CST 5

/* Each of these is a full barrier. */
static __inline __int64 bridge_exchange(volatile void *place, __int64 value, size_t size) {
    switch (size) {
    case 1: return _InterlockedExchange8((volatile char *)place, (char)value);
    case 2: return _InterlockedExchange16((volatile short *)place, (short)value);
    case 4: return _InterlockedExchange((volatile long *)place, (long)value);
    default: return _InterlockedExchange64((volatile __int64 *)place, value);
    }
}
static __inline __int64 bridge_add(volatile void *place, __int64 n, size_t size) {
    switch (size) {
    case 1: return (char)(_InterlockedExchangeAdd8((volatile char *)place, (char)n) + (char)n);
    case 2: return (short)(_InterlockedExchangeAdd16((volatile short *)place, (short)n) + (short)n);
    case 4: return _InterlockedExchangeAdd((volatile long *)place, (long)n) + (long)n;
    default: return _InterlockedExchangeAdd64((volatile __int64 *)place, n) + n;
    }
}
#define __atomic_exchange_n(place, value, order) \
    ((__typeof__(*(place)))bridge_exchange((place), (__int64)(value), sizeof *(place)))
#define __atomic_store_n(place, value, order) \
    ((void)bridge_exchange((place), (__int64)(value), sizeof *(place)))
/* On x86-64 no load is done before an earlier one. */
#define __atomic_load_n(place, order) (*(volatile __typeof__(*(place)) *)(place))
#define __atomic_add_fetch(place, n, order) \
    ((__typeof__(*(place)))bridge_add((place), (__int64)(n), sizeof *(place)))
#define __atomic_sub_fetch(place, n, order) \
    ((__typeof__(*(place)))bridge_add((place), -(__int64)(n), sizeof *(place)))
#define __atomic_thread_fence(order) _ReadWriteBarrier()
#endif

#endif
