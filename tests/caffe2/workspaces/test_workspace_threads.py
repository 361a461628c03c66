# SPDX-License-Identifier: Apache-2.0
"""Threads on a whole workspace: each blob behaves as if calls came one by one.

Random programs of two to four threads: feeds and fetches as in `test_feed_fetch_threads`, and
operators, nets, messages, removed blobs, lists of blobs, resets, and switches to another workspace.
The calls that concern a name, with all resets and switches, must have an order that keeps the order
of calls that did not overlap, and in which a single thread would see what they returned.

An operator takes two steps: it finds or creates its output, and writes it. So does a net. Between
the two, the blob is there and may be removed. Values have one element, which is written whole.
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
from bridge.caffe2 import core, workspace
from tests.helpers.interleaving import Schedule

pytestmark = pytest.mark.usefixtures("fresh_workspace")

NAMES = ("a", "b")
WORKSPACES = ("default", "other")
ABSENT, EMPTY = "absent", "empty"
NET_VALUE = 50  # that the nets write; operators write other numbers


@dataclass
class Call:
    """A call: what it does, on which name, and, once it ran, when and what it returned."""

    kind: str
    name: str = ""
    number: int = 0
    begin: int = field(default=-1, compare=False)
    end: int = field(default=-1, compare=False)
    returned: Any = field(default=None, compare=False)

    def run(self, clock: Iterator[int]) -> None:
        self.begin = next(clock)
        try:
            self.returned = RUN[self.kind](self)
        except EnforceNotMet as error:
            self.returned = ABSENT if isinstance(error, KeyError) else EMPTY
        self.end = next(clock)


def value_of(call: Call) -> np.ndarray[Any, Any]:
    return np.array([call.number], np.float32)


def operator_of(name: str, number: int) -> Any:
    return core.CreateOperator("ConstantFill", [], name, shape=[1], value=float(number))


def message_of(call: Call) -> bytes:
    return MESSAGES[call.number]


RUN: dict[str, Callable[[Call], Any]] = {
    "feed": lambda c: workspace.FeedBlob(c.name, value_of(c)),
    "feed_torch": lambda c: workspace.FeedBlob(c.name, torch.from_numpy(value_of(c))),
    "fetch": lambda c: int(workspace.FetchBlob(c.name)[0]),
    "fetch_torch": lambda c: workspace.FetchTorch(c.name).numel(),
    "has": lambda c: workspace.HasBlob(c.name),
    "listed": lambda c: c.name in workspace.Blobs(),
    "remove": lambda c: workspace.Workspace.current.remove_blob(c.name),
    "empty": lambda c: workspace.ResetBlob(c.name),
    "message": lambda c: workspace.DeserializeBlob(c.name, message_of(c)),
    "operator": lambda c: workspace.RunOperatorOnce(operator_of(c.name, c.number)),
    "net": lambda c: workspace.RunNet(f"writes_{c.name}"),
    "reset": lambda c: workspace.ResetWorkspace(),
    "switch": lambda c: workspace.SwitchWorkspace(WORKSPACES[c.number % 2]),
}
MESSAGES: dict[int, bytes] = {}


@dataclass(frozen=True)
class State:
    """What the workspaces hold under one name; a blob is a number, whose contents stay."""

    current: int = 0
    blobs: tuple[int | None, ...] = (None, None)  # of each workspace
    contents: tuple[Any, ...] = ()
    nets: tuple[int | None, ...] = (None, None)  # the blob that the net of each writes

    @property
    def here(self) -> int | None:
        return self.blobs[self.current]

    @property
    def value(self) -> Any:
        return ABSENT if self.here is None else self.contents[self.here]

    def named(self, blob: int | None) -> State:
        blobs = tuple(blob if i == self.current else one for i, one in enumerate(self.blobs))
        return State(self.current, blobs, self.contents, self.nets)

    def created(self) -> State:
        if self.here is not None:
            return self
        return State(self.current, self.blobs, (*self.contents, EMPTY), self.nets).named(
            len(self.contents)
        )

    def written(self, blob: int | None, value: Any) -> State:
        contents = tuple(value if i == blob else one for i, one in enumerate(self.contents))
        return State(self.current, self.blobs, contents, self.nets)


# What a call has done so far: the blob that its second step writes; None: it has not begun.
Progress = int | None
NOT_DONE = object()


def step(state: State, call: Call, begun: Progress) -> tuple[State, Progress, Any]:
    """The model: the state after the next step of a call, its progress, and what it returns.

    NOT_DONE instead of that after the first of two steps.
    """
    kind = call.kind
    if begun is not None:
        return state.written(begun, NET_VALUE if kind == "net" else call.number), None, True
    if kind == "operator":
        state = state.created()
        return state, state.here, NOT_DONE
    if kind == "net":
        blob = state.nets[state.current]
        return state, blob, ABSENT if blob is None else NOT_DONE
    if kind in ("feed", "feed_torch", "message"):
        state = state.created()
        result = None if kind == "message" else True
        return state.written(state.here, call.number), None, result
    if kind == "empty":
        if state.here is None:
            return state, None, ABSENT
        return state.written(state.here, EMPTY), None, None
    if kind == "fetch":
        return state, None, state.value
    if kind == "fetch_torch":
        return state, None, state.value if state.value in (ABSENT, EMPTY) else 1
    if kind in ("has", "listed"):
        return state, None, state.here is not None
    if kind == "remove":
        return state.named(None), None, None
    if kind == "reset":
        nets = tuple(None if i == state.current else one for i, one in enumerate(state.nets))
        state = state.named(None)
        return State(state.current, state.blobs, state.contents, nets), None, True
    assert kind == "switch"
    return State(call.number % 2, state.blobs, state.contents, state.nets), None, None


def has_order(calls: list[Call], state: State) -> bool:
    """Return whether calls have an order in which the model returns what they did."""
    failed: set[Any] = set()

    def search(open_calls: tuple[int, ...], begun: tuple[Progress, ...], state: State) -> bool:
        if not open_calls:
            return True
        key = (open_calls, begun, state)
        if key in failed:
            return False
        first_end = min(calls[i].end for i in open_calls)
        for place, i in enumerate(open_calls):
            if calls[i].begin > first_end:  # another call ended before this one began
                continue
            now, progress, returned = step(state, calls[i], begun[place])
            if returned is NOT_DONE:
                after = (*begun[:place], progress, *begun[place + 1 :])
                if search(open_calls, after, now):
                    return True
            elif returned == calls[i].returned:
                rest = open_calls[:place] + open_calls[place + 1 :]
                if search(rest, begun[:place] + begun[place + 1 :], now):
                    return True
        failed.add(key)
        return False

    return search(tuple(range(len(calls))), (None,) * len(calls), state)


def prepared() -> State:
    """Make both workspaces as the model begins: each has the blobs that its nets write, empty."""
    for name in reversed(WORKSPACES):
        workspace.SwitchWorkspace(name, True)
        workspace.ResetWorkspace()
        for blob in NAMES:
            net = core.Net(f"writes_{blob}")
            net.ConstantFill([], blob, shape=[1], value=float(NET_VALUE))
            message = net.Proto()
            message.name = f"writes_{blob}"  # where core.Net adds a number to a name in use
            workspace.CreateNet(message, overwrite=True)
    if not MESSAGES:
        for number in range(1, 10):
            blob = workspace.Workspace().create_blob("x")
            blob.feed(np.array([number], np.float32))
            MESSAGES[number] = blob.serialize("x")
    return State(0, (0, 1), (EMPTY, EMPTY), (0, 1))


def check(calls: list[Call], state: State) -> None:
    for name in NAMES:
        concerned = [call for call in calls if call.name in (name, "")]
        assert has_order(concerned, state), "\n".join(
            map(str, sorted(concerned, key=lambda call: call.begin))
        )


def run_all(calls: list[Call], clock: Iterator[int]) -> None:
    for call in calls:
        call.run(clock)


ON_BLOBS = st.builds(
    Call,
    st.sampled_from(
        [
            *("feed", "feed", "feed_torch", "fetch", "fetch", "fetch_torch", "has", "listed"),
            *("remove", "empty", "message", "operator", "operator", "net", "net"),
        ]
    ),
    st.sampled_from(NAMES),
    st.integers(1, 9),
)
ON_WORKSPACES = st.builds(
    Call, st.sampled_from(["reset", "switch"]), st.just(""), st.integers(0, 1)
)
PROGRAMS = st.lists(
    st.lists(ON_BLOBS | ON_BLOBS | ON_BLOBS | ON_WORKSPACES, min_size=1, max_size=4),
    min_size=2,
    max_size=4,
)


def copies(program: list[list[Call]]) -> list[list[Call]]:
    return [[Call(call.kind, call.name, call.number) for call in calls] for calls in program]


@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(PROGRAMS, st.integers(0, 2**32))
def test_threads_in_any_interleaving_act_as_if_calls_came_one_by_one(
    program: list[list[Call]], seed: int
) -> None:
    # A switch or a reset takes a lock, so that it is not run where a thread may wait for another.
    program = [[c for c in calls if c.kind not in ("reset", "switch")] for calls in program]
    state = prepared()
    threads = copies(program)
    clock = itertools.count()
    Schedule(seed).run([partial(run_all, calls, clock) for calls in threads])
    check([call for calls in threads for call in calls], state)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(PROGRAMS)
def test_threads_that_python_interleaves_act_as_if_calls_came_one_by_one(
    program: list[list[Call]],
) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        state = prepared()
        threads = copies(program)
        clock = itertools.count()
        with ThreadPoolExecutor(len(threads)) as pool:
            for done in [pool.submit(run_all, calls, clock) for calls in threads]:
                done.result()
    finally:
        sys.setswitchinterval(before)
    check([call for calls in threads for call in calls], state)


def test_the_model_refuses_results_that_no_order_explains() -> None:
    fed = Call("feed", "a", 3, begin=0, end=1, returned=True)
    seen = Call("fetch", "a", begin=2, end=3, returned=4)
    assert not has_order([fed, seen], State())
    overlapping = Call("feed", "a", 4, begin=0, end=9, returned=True)
    assert has_order([fed, seen, overlapping], State())
