# SPDX-License-Identifier: Apache-2.0
"""What a second thread costs: conversions, over plain Python objects.

With a global interpreter lock two threads take at least twice as long as one; a bridge that held
locks of its own, or gave the lock up and fought for it, would take longer still. Without the lock
two threads do twice the work in the same time, unless they share what changes.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from statistics import median
from time import perf_counter

import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace
from tests.benchmarks.harness import Effort, Outcome, Row, Timer, loop, runs_needed
from tests.benchmarks.wrappers import Slot

# Long beside the interpreter's switch interval, so that the threads do change places.
SAMPLES_PER_SHARE = 40
STRETCH = 8


def wall_seconds(timer: Timer, number: int, threads: int) -> float:
    """Give the time until the last of `threads`, started together, has run `number` times."""
    barrier = threading.Barrier(threads + 1)

    def work() -> None:
        barrier.wait()
        timer(number)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = perf_counter()
    for worker in workers:
        worker.join()
    return perf_counter() - start


def cost_of_second(timer: Timer, number: int) -> float:
    """Give the time of two threads over that of one, each with the same work."""
    return wall_seconds(timer, number, 2) / wall_seconds(timer, number, 1)


def compare_threads(ours: Timer, peers: Timer, effort: Effort) -> Outcome:
    """Measure both costs by turns; ours over theirs."""
    seconds = effort.seconds * SAMPLES_PER_SHARE
    our_number, peer_number = runs_needed(ours, seconds), runs_needed(peers, seconds)
    our_costs, peer_costs = [], []
    for _ in range(effort.rounds):
        our_costs.append(cost_of_second(ours, our_number))
        peer_costs.append(cost_of_second(peers, peer_number))
    ratio = median(a / b for a, b in zip(our_costs, peer_costs, strict=True))
    return Outcome(ratio, f"{median(our_costs):.2f} ×", f"{median(peer_costs):.2f} ×")


def is_locked() -> bool:
    """Return whether one thread runs at a time."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def compare_work(timers: list[Timer], effort: Effort) -> Outcome:
    """Measure how much more two threads do than one, each with a timer of its own.

    The figure is 2 over that: 1 if they share nothing, 2 if one waits for the other. The best of
    many short stretches of time counts, in which all that both threads have finished is added up:
    on a machine that does other things, both run at once in some of them only.
    """
    number = runs_needed(timers[0], effort.seconds)

    def most(used: list[Timer]) -> float:
        """Return the most runs per second in a stretch of `STRETCH` samples of the first thread."""
        barrier = threading.Barrier(len(used))
        samples: list[list[tuple[float, float]]] = [[] for _ in used]

        def work(timer: Timer, taken: list[tuple[float, float]]) -> None:
            barrier.wait()
            for _ in range(SAMPLES_PER_SHARE):
                start = perf_counter()
                timer(number)
                taken.append((start, perf_counter()))

        workers = [
            threading.Thread(target=work, args=pair) for pair in zip(used, samples, strict=True)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        best = 0.0
        for i in range(SAMPLES_PER_SHARE - STRETCH + 1):
            begin, end = samples[0][i][0], samples[0][i + STRETCH - 1][1]
            done = sum(begin <= start and stop <= end for one in samples for start, stop in one)
            best = max(best, done / (end - begin))
        return best

    alone = max(most(timers[:1]) for _ in range(effort.rounds))
    both = max(most(timers) for _ in range(effort.rounds))
    return Outcome(2 * alone / both, f"{both / alone:.2f} × the work", "2 × the work")


def free_rows(effort: Effort) -> Iterator[Row]:
    """Measure, without the lock, threads on objects of their own."""
    tensors = [torch.zeros((2, 3)) for _ in range(2)]
    wrappers = [at.zeros((2, 3)) for _ in range(2)]
    others = [caffe2.Tensor(one) for one in wrappers]
    for i, tensor in enumerate(tensors):
        workspace.FeedBlob(f"own{i}", tensor)
    own = range(2)
    feed, fetch = workspace.FeedBlob, workspace.FetchTorch
    routes = {
        "`from_dlpack(torch)`": [
            loop("from_dlpack(t)", from_dlpack=bridge.from_dlpack, t=tensors[i]) for i in own
        ],
        "`caffe2.Tensor(at_tensor)`": [
            loop("Tensor(a)", Tensor=caffe2.Tensor, a=wrappers[i]) for i in own
        ],
        "`at.Tensor(caffe2_tensor)`": [
            loop("Tensor(c)", Tensor=at.Tensor, c=others[i]) for i in own
        ],
        "`FeedBlob(torch)`": [
            loop("feed(name, t)", feed=feed, name=f"own{i}", t=tensors[i]) for i in own
        ],
        "`FetchTorch`": [loop("fetch(name)", fetch=fetch, name=f"own{i}") for i in own],
    }
    for what, timers in routes.items():
        outcome = compare_work(timers, effort)
        # 1.8 times the work: in 1.11 times the time
        yield Row(f"without the GIL: {what}", "one thread", 1.11, 1.0, outcome)


def rows(effort: Effort) -> Iterator[Row]:
    """Measure an import, an export and a change of wrapper."""
    if not is_locked():
        yield from free_rows(effort)
        return
    t = torch.zeros((2, 3))
    a = at.zeros((2, 3))
    peer = loop("Slot(t)", Slot=Slot, t=t)
    routes = {
        "`from_dlpack(torch)`": loop("from_dlpack(t)", from_dlpack=bridge.from_dlpack, t=t),
        "`to_torch()`": loop("a.to_torch()", a=a),
        "`caffe2.Tensor(at_tensor)`": loop("Tensor(a)", Tensor=caffe2.Tensor, a=a),
    }
    for what, timer in routes.items():
        outcome = compare_threads(timer, peer, effort)
        yield Row(f"two threads: {what}", "pure Python's cost", 1.5, 1.25, outcome)
