# SPDX-License-Identifier: Apache-2.0
"""Threads that feed and fetch the same blobs: each blob behaves as if calls came one by one.

A random program of two to four threads runs in an order that a seed chooses. Its history, which
calls overlapped and what they returned, must have an order of the calls of each blob that keeps
the order of calls that did not overlap, and in which each call returns what a single thread would
see (linearizability, Herlihy and Wing, 1990). Operators take no part in it: another thread may see
the output of one before all of it is written.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import workspace
from tests.helpers.interleaving import Schedule

pytestmark = pytest.mark.usefixtures("fresh_workspace")

ABSENT = "absent"
SMALL, LARGE = ("float32", (2,), 1), ("float32", (5,), 2)
State = Any


@dataclass
class Call:
    """A call on a blob: what it does, and, once it ran, when and what it returned."""

    blob: str
    kind: str
    value: tuple[str, tuple[int, ...], int] | None = None
    begin: int = field(default=-1, compare=False)
    end: int = field(default=-1, compare=False)
    returned: State = field(default=None, compare=False)

    def run(self, clock: Iterator[int]) -> None:
        self.begin = next(clock)
        self.returned = RUN[self.kind](self)
        self.end = next(clock)


def _array(call: Call) -> np.ndarray[Any, Any]:
    assert call.value is not None
    dtype, shape, number = call.value
    return np.full(shape, number, dtype)


def _feed(call: Call) -> State:
    return workspace.FeedBlob(call.blob, _array(call))


def _feed_torch(call: Call) -> State:
    return workspace.FeedBlob(call.blob, torch.from_numpy(_array(call)))


def _feed_string(call: Call) -> State:
    return workspace.FeedBlob(call.blob, repr(call.value))


def _fetch(call: Call) -> State:
    try:
        value = workspace.FetchBlob(call.blob)
    except EnforceNotMet as error:
        return ABSENT if isinstance(error, KeyError) else repr(error)
    return value.decode() if isinstance(value, bytes) else _described(value)


def _described(value: np.ndarray[Any, Any]) -> State:
    numbers = sorted({int(number) for number in value.ravel()})
    return str(value.dtype), value.shape, numbers


def _has(call: Call) -> State:
    return workspace.HasBlob(call.blob)


RUN: dict[str, Callable[[Call], State]] = {
    "feed": _feed,
    "feed_torch": _feed_torch,
    "feed_string": _feed_string,
    "fetch": _fetch,
    "has": _has,
}


def after(state: State, call: Call) -> tuple[State, State]:
    """The sequential model: what the blob holds after the call, and what the call returns."""
    if call.kind == "has":
        return state, state != ABSENT
    if call.kind == "fetch":
        return state, state
    assert call.value is not None
    dtype, shape, number = call.value
    if call.kind == "feed_string":
        return repr(call.value), True
    return (dtype, shape, [number] if np.prod(shape) else []), True


def has_order(calls: list[Call], state: State = ABSENT) -> bool:
    """Return whether calls of one blob have an order in which the model returns what they did."""
    if not calls:
        return True
    first_end = min(call.end for call in calls)
    for call in calls:
        if call.begin > first_end:  # another call ended before this one began
            continue
        now, returned = after(state, call)
        if returned == call.returned:
            rest = [other for other in calls if other is not call]
            if has_order(rest, now):
                return True
    return False


def check(threads: list[list[Call]]) -> None:
    by_blob = sorted((call for calls in threads for call in calls), key=lambda call: call.blob)
    for _, group in itertools.groupby(by_blob, lambda call: call.blob):
        calls = list(group)
        assert has_order(calls), "\n".join(map(str, sorted(calls, key=lambda call: call.begin)))


VALUES = st.tuples(
    st.sampled_from(["float32", "int64"]),
    st.sampled_from([(2,), (5,), (0,), (2, 3, 1)]),
    st.integers(1, 9),
)
CALLS = st.builds(
    Call,
    st.sampled_from("ab"),
    st.sampled_from(["feed", "feed", "feed_torch", "feed_string"]),
    VALUES,
) | st.builds(Call, st.sampled_from("ab"), st.sampled_from(["fetch", "fetch", "has"]))
PROGRAMS = st.lists(st.lists(CALLS, min_size=1, max_size=4), min_size=2, max_size=4)


def copies(program: list[list[Call]]) -> list[list[Call]]:
    return [[Call(call.blob, call.kind, call.value) for call in calls] for calls in program]


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(PROGRAMS, st.integers(0, 2**32), st.booleans())
def test_each_blob_behaves_as_if_calls_came_one_by_one(
    program: list[list[Call]], seed: int, fed: bool
) -> None:
    first = [Call("a", "feed", LARGE), Call("b", "feed", LARGE)] if fed else []
    for order in range(3):
        workspace.ResetWorkspace()
        threads = copies([first, *program])
        clock = itertools.count()
        for call in threads[0]:
            call.run(clock)
        Schedule(seed + order).run([partial(run_all, calls, clock) for calls in threads[1:]])
        check(threads)


def run_all(calls: list[Call], clock: Iterator[int]) -> None:
    for call in calls:
        call.run(clock)


@pytest.mark.parametrize("first", ["feed", "feed_torch", "feed_string"])
@pytest.mark.parametrize("other", [LARGE, ("int64", (2,), 3), ("float32", (2,), 4)])
def test_free_threads_see_each_blob_change_as_a_whole(first: str, other: Any) -> None:
    """Threads as Python runs them, each program many times."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            workspace.ResetWorkspace()
            workspace.FeedBlob("a", np.zeros(5, np.float32))
            threads = [
                [Call("a", first, SMALL), Call("a", "fetch"), Call("a", "feed", other)],
                [Call("a", "feed", other), Call("a", "fetch")],
                [Call("a", "fetch"), Call("a", "fetch"), Call("a", "has")],
            ]
            clock = itertools.count()
            with ThreadPoolExecutor(len(threads)) as pool:
                for done in [pool.submit(run_all, calls, clock) for calls in threads]:
                    done.result()
            initial = ("float32", (5,), [0])
            calls = [call for group in threads for call in group]
            assert has_order(calls, initial), "\n".join(map(str, calls))
    finally:
        sys.setswitchinterval(before)
