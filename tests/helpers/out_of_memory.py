# SPDX-License-Identifier: Apache-2.0
"""Make each allocation of a call fail in turn, and compare the state after it with that before.

`check_calls` runs each call again and again; in the n-th run the n-th allocation fails, for every n
until a run needs no more. Memory of Python's objects fails by CPython's own test module, memory of
elements by an allocator that raises.
"""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bridge import at, c10, caffe2
from bridge.caffe2 import workspace

# What is made before a call, and the call itself. Its result is thrown away.
Call = tuple[Callable[[], Any], Callable[[Any], object]]

MOST = 10000  # allocations of one call; far more than any has
ROUNDS = (3, 20, 60, 200, 1000, 1000)  # runs of all failures
WARM_UP = 70  # calls: what is loaded and cached once, and objects that are kept for the next
SHOWN = 4  # of the failures that are wrong
# Runs without a failure, after which there is nothing left to fail; more than the allocations in a
# row of which protobuf or CPython go on without.
ENOUGH = 40


def require_failing_allocations() -> Any:
    """Return CPython's `_testcapi`, or skip."""
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no _testcapi")
    if not hasattr(testcapi, "set_nomemory"):
        pytest.skip("this Python's _testcapi cannot make allocations fail")
    return testcapi


# dict.setdefault of CPython 3.13.0 returns the value that it has no memory to insert, and the error
# stays set: whatever is called next fails. That of 3.13.15 raises.
_SET_DEFAULT = """
import _testcapi
class Value: pass
def set_default(n):
    full = dict.fromkeys("abcde")
    value = Value()
    _testcapi.set_nomemory(n, n + 1)
    try:
        full.setdefault("f", value)
    except MemoryError:
        pass
    _testcapi.remove_mem_hooks()
for n in range(20):
    set_default(n)
"""
# CPython 3.12.1 goes on with a generator for which it found no memory.
_GENERATORS = """
import _testcapi
for n in range(20):
    _testcapi.set_nomemory(n, n + 1)
    try:
        all(n for n in (1, 2))
    except MemoryError:
        pass
    _testcapi.remove_mem_hooks()
"""
# CPython 3.12 and 3.13 give back the code of a function for which they find no memory, though they
# did not take it. From 3.14 without the GIL, too, but the count that it has there never gets to 0.
_FUNCTIONS = """
import _testcapi, os, sys
def make():
    def inner(): return 1
    return inner
code = make().__code__
held = [code] * 9
before = sys.getrefcount(code)
for _ in range(2):
    _testcapi.set_nomemory(0, 1)
    try:
        make()
    except MemoryError:
        pass
    _testcapi.remove_mem_hooks()
os._exit(sys.getrefcount(code) <= before - 2 < 1000)
"""
# CPython 3.15.0rc2 gives back what is appended twice, where a list has no memory for it.
_APPENDS = """
import _testcapi, os, sys
class Kept: pass
kept = Kept()
def get(): return kept
def append():
    made = []
    made.append(get())
for n in range(40):
    append()
held = [kept] * 40
before = sys.getrefcount(kept)
for n in range(20):
    _testcapi.set_nomemory(n, n + 1)
    try:
        append()
    except MemoryError:
        pass
    _testcapi.remove_mem_hooks()
os._exit(sys.getrefcount(kept) < before)
"""


@functools.cache
def survives(code: str) -> bool:
    """Return whether this Python comes to the end of `code`."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return done.returncode == 0


# What fails for want of memory gives back what it was passed, once. (The process ends at once: what
# was freed twice must not be used again.)
_COUNTED = """
import _testcapi, os, sys
kept = [1]
def make(kept):
    return {made}
def fail(n):
    _testcapi.set_nomemory(n, n + 1)
    try:
        make(kept)
    except MemoryError:
        pass
    _testcapi.remove_mem_hooks()
before = sys.getrefcount(kept)
{first}
for n in 0, 1, 0, 1:
    fail(n)
os._exit(sys.getrefcount(kept) != before)
"""
# PyList_New of CPython 3.13 to 3.15 without the GIL: where it finds no memory for the items, it
# frees the list before `ob_item` is set. In a list that it takes from those that it keeps, that is
# NULL, but CPython 3.13 keeps lists with the items that they had.
_LISTS = _COUNTED.format(
    made="[kept]", first="make(kept); spare = [[] for _ in range(100)]; del spare; make(kept)"
)
_WITHOUT_GIL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def _keep_spares() -> None:
    """Let this thread have pairs, and lists without items, to take its next ones from.

    Without the GIL, CPython frees wild memory where it has to make a list itself and then finds no
    memory for the items: see `_LISTS`. CPython 3.10 to 3.12 crashes where it makes an iterator over
    the items of a dict and finds no memory for the pair that the iterator keeps.
    """
    lists: list[list[object]] = [[] for _ in range(100)]  # CPython keeps 80
    pairs = [(n, n) for n in range(100)]
    del lists, pairs


_FATAL = {
    _LISTS: "frees items twice when PyList_New finds no memory",
    _GENERATORS: "crashes where it finds no memory for a generator",
    _FUNCTIONS: "frees the code of a function for which it finds no memory",
    _APPENDS: "gives back an item twice that a list has no memory for",
}


def _require(*probes: str) -> None:
    for code in probes:
        if not survives(code):
            pytest.skip(f"this CPython {_FATAL[code]}")


def require_list_new() -> None:
    """Skip where CPython does not survive a list of given length for which it finds no memory."""
    _require(_LISTS)


def require_python_code() -> None:
    """Skip where CPython does not survive a failure of what code in Python does anywhere.

    Such are lists, generators, functions inside of functions, items that are appended.
    """
    _require(*_FATAL)


# MAKE_CELL of CPython 3.11: where it finds no memory, the arguments of the call are not given back.
_CELLS = _COUNTED.format(made="[kept for _ in 'a']", first="")
# list(...) of CPython 3.10 to 3.12 keeps the list that it was given.
_LIST_OF = _COUNTED.format(made="list(kept)", first="")


def python_leaks() -> bool:
    """Return whether functions in Python leave memory behind, on this CPython, when they find none.

    Nothing is counted then, which on 3.10 also keeps the calls of one function below 1,024. There,
    CPython makes caches for its code, and frees one twice if it finds no memory for another.
    """
    return not (survives(_CELLS) and survives(_LIST_OF))


def state(value: Any) -> Any:
    """Return what a user can see of a tensor; of a list or tuple, of each of its items."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [state(item) for item in value]
    if isinstance(value, caffe2.Tensor):
        if not value.defined():
            return None
        held = list(value.data()) if value.storage_initialized() else None
    elif isinstance(value, at.Tensor):
        held = value.tolist()
    else:
        return sys.getrefcount(value)
    storage = value.storage()
    return (
        str(value.dtype()),
        list(value.sizes()),
        list(value.strides()),
        (storage.use_count(), storage.nbytes(), storage.data_ptr(), str(storage.dtype())),
        held,
    )


def blobs() -> Any:
    """Return the contents of the current workspace."""
    found = []
    for name in workspace.Blobs():
        held: Any = workspace.Workspace.current.blobs[name]
        value = held.fetch() if held.is_tensor() or held.IsType(bytes) else repr(held)
        found.append((name, value.tolist() if hasattr(value, "tolist") else value))
    immediate = workspace.IsImmediate(), workspace._immediate_root_folder
    return workspace.CurrentWorkspace(), workspace.Workspaces(), found, workspace.Nets(), immediate


def nothing() -> None:
    """Return None: there is no state beside that of the arguments."""


class _Meter(c10.Allocator):
    """Hands on to the usual allocator, and fails at the allocation that is asked for."""

    def __init__(self, real: c10.Allocator) -> None:
        super().__init__()
        self.real, self.left = real, -1
        self.held: dict[int, c10.DataPtr] = {}

    def raw_allocate(self, nbytes: int) -> int:
        self.left -= 1
        if self.left == -1:
            raise MemoryError("as asked for")
        ptr = self.real.allocate(nbytes)
        self.held[ptr.address] = ptr
        return ptr.address

    def raw_deallocate(self, address: int) -> None:
        del self.held[address]


@contextmanager
def _metered() -> Iterator[_Meter]:
    real = c10.GetAllocator("cpu")
    meter = _Meter(real)
    c10.SetAllocator("cpu", meter)
    try:
        yield meter
    finally:
        c10.SetAllocator("cpu", real)


def _is_for_memory(error: BaseException | None) -> bool:
    """Return whether memory was the reason, though others report it by errors of their own."""
    while error is not None:
        # SystemError: CPython and NumPy lose some MemoryErrors on the way
        said = str(error)
        if isinstance(error, (MemoryError, SystemError)) or "Failed to allocate" in said:
            return True
        if (  # torch's, which also takes the missing name of a type for a broken assertion
            said == "can't allocate lock"
            or said.startswith("Defining your mode's")
            or ("INTERNAL ASSERT FAILED" in said and "python_arg_parser.cpp" in said)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def _attempt(
    call: Callable[[Any], object], value: Any, start: Callable[[], None], stop: Callable[[], None]
) -> str | None:
    """Run the call with a failure; None if it needed no memory that failed."""
    verdict: str | None = None
    hook = sys.unraisablehook

    def unraisable(found: Any) -> None:
        # a generator that finds no memory when it is closed; from Python 3.14 it is in the message
        closing = (found.err_msg or "").startswith("Exception ignored while closing generator")
        # shutil.rmtree's iterator over a folder, where it finds no memory for `with`
        unclosed = isinstance(found.exc_value, ResourceWarning)
        if not closing and not unclosed and not isinstance(found.object, types.GeneratorType):
            hook(found)

    sys.unraisablehook = unraisable
    gc.disable()  # a collection that begins now needs memory itself, and cannot raise to a caller
    _keep_spares()
    start()
    try:
        call(value)
    except BaseException as error:  # noqa: BLE001 - looked at below
        stop()
        verdict = "" if _is_for_memory(error) else repr(error)
    else:
        stop()
    gc.enable()
    sys.unraisablehook = hook
    return verdict


def _check(
    call: Call,
    prepare: Callable[[], object],
    around: Callable[[], Any],
    fail_at: Callable[[int], None],
    stop: Callable[[], None],
    counted: bool,
) -> list[str]:
    """Return what was wrong after any of the failures."""
    make, function = call
    untouched, wrong, failing = 0, [], []
    for n in range(MOST):
        prepare()
        value = make()
        before = state(value), around()
        verdict = _attempt(function, value, lambda n=n: fail_at(n), stop)  # type: ignore[misc]
        if verdict is None:
            untouched += 1
            if untouched == ENOUGH:
                break
            continue
        untouched = 0
        failing.append(n)
        if verdict and len(wrong) < SHOWN:
            wrong.append(f"allocation {n}: not a MemoryError: {verdict}")
        after = state(value), around()
        if after != before and len(wrong) < SHOWN:
            wrong.append(f"allocation {n}: changed from {before} to {after}")
    else:
        raise AssertionError(f"more than {MOST} allocations")

    def fail_at_all() -> None:
        for n in failing:
            prepare()
            _attempt(function, make(), lambda n=n: fail_at(n), stop)  # type: ignore[misc]

    return [*wrong, *(_left_behind(fail_at_all) if counted else [])]


def _left_behind(run: Callable[[], None]) -> list[str]:
    """Return what is wrong if each call of `run` adds a block of Python's memory, or more.

    What is kept for later adds blocks, too, up to some hundred, and to 2,000 in the first 600 runs
    on Python 3.15 without the GIL: the rounds are many calls.
    """
    grown = []
    for calls in ROUNDS:
        _collect()
        blocks = sys.getallocatedblocks()
        for _ in range(calls):
            run()
        _collect()
        grown.append(sys.getallocatedblocks() - blocks)
        if grown[-1] < calls:
            return []
    return [f"allocations leave memory behind: {ROUNDS} times all failures add {grown} blocks"]


def _collect() -> None:
    """Free unreferenced objects; without the GIL, those kept for other threads go later."""
    for _ in range(4 if _WITHOUT_GIL else 1):
        gc.collect()


def check_call(
    call: Call,
    prepare: Callable[[], object] = nothing,
    around: Callable[[], Any] = nothing,
    *,
    python_may_leak: bool = False,
) -> list[str]:
    """Return what was wrong when allocations of the call failed; nothing, if all is as it should.

    `prepare` is run before `call[0]`, `around` returns the state that its result does not have.
    python_may_leak: what CPython leaves behind, if `python_leaks()`, is not held against the call.
    """
    testcapi = require_failing_allocations()
    if not survives(_SET_DEFAULT):
        pytest.skip("this CPython's dict.setdefault returns a value although it finds no memory")
    counted = not (python_may_leak and python_leaks())
    for _ in range(WARM_UP if counted else 2):
        prepare()
        call[1](call[0]())
    gc.freeze()  # what is loaded now stays, and is not looked through again and again

    def fail_python(n: int) -> None:
        testcapi.set_nomemory(n, n + 1)

    found = _check(call, prepare, around, fail_python, testcapi.remove_mem_hooks, counted)
    wrong = [f"Python's {line}" for line in found]
    with _metered() as meter:

        def fail_elements(n: int) -> None:
            meter.left = n

        prepare()
        held = len(meter.held)
        found = _check(call, prepare, around, fail_elements, lambda: fail_elements(-1), counted)
        prepare()
        gc.collect()
        if len(meter.held) > held:
            found.append(f"memory is not given back, {len(meter.held) - held} times")
    return [*wrong, *(f"the elements' {line}" for line in found)]
