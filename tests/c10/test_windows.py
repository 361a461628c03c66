# SPDX-License-Identifier: Apache-2.0
"""bridge/c10/windows.h: atomic functions by those of Microsoft's compiler, here by stand-ins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HEADER = Path(__file__).parents[2] / "bridge/c10/windows.h"
# What intrin.h and the compiler have.
STAND_INS = """
#define _MSC_VER 1939
#define __int64 long long
#define __inline inline
"""
INTRIN = """
#define OF(name, type) \\
    static type _InterlockedExchange##name(volatile type *place, type value) { \\
        type before = *place; *place = value; return before; } \\
    static type _InterlockedExchangeAdd##name(volatile type *place, type n) { \\
        type before = *place; *place = (type)(before + n); return before; }
OF(8, char) OF(16, short) OF(, long) OF(64, long long)
#define _ReadWriteBarrier() ((void)0)
#define __popcnt64(bits) 0
"""
PROGRAM = """
#include "%s"
#include <assert.h>
int main(void) {
    char flag = 0; int count = 5; long long size = 1LL << 40; unsigned at = 4294967295u;
    double one = 1, two = 2; double *begin = &one;
    assert(__atomic_exchange_n(&flag, 1, __ATOMIC_ACQ_REL) == 0 && flag == 1);
    assert(__atomic_add_fetch(&count, -7, __ATOMIC_SEQ_CST) == -2 && count == -2);
    assert(__atomic_sub_fetch(&count, 3, __ATOMIC_SEQ_CST) == -5);
    assert(__atomic_add_fetch(&size, 1, __ATOMIC_ACQ_REL) == (1LL << 40) + 1);
    assert(__atomic_load_n(&at, __ATOMIC_RELAXED) == 4294967295u);
    __atomic_store_n(&at, __atomic_load_n(&at, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    assert(at == 0);
    __atomic_store_n(&begin, &two, __ATOMIC_RELEASE);
    assert(*__atomic_load_n(&begin, __ATOMIC_ACQUIRE) == 2);
    assert(__atomic_exchange_n(&begin, &one, __ATOMIC_ACQ_REL) == &two && begin == &one);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return 0;
}
"""


def test_the_atomic_functions_do_what_those_of_gcc_do(tmp_path: Path) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    (tmp_path / "intrin.h").write_text(INTRIN)
    (tmp_path / "program.c").write_text(STAND_INS + PROGRAM % HEADER)
    subprocess.run(
        [compiler, "-std=gnu11", "-fno-builtin", "-I.", "program.c", "-o", "program"],
        cwd=tmp_path,
        check=True,
    )
    subprocess.run([tmp_path / "program"], check=True)
