# SPDX-License-Identifier: Apache-2.0
"""What a second thread costs: conversions, over plain Python objects.

With a global interpreter lock two threads take at least twice as long as one; a bridge that held
locks of its own, or gave the lock up and fought for it, would take longer still.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from statistics import median
from time import perf_counter

import torch

import bridge
from bridge import at, caffe2
from tests.benchmarks.harness import Effort, Outcome, Row, Timer, loop, runs_needed
from tests.benchmarks.wrappers import Slot

# Long beside the interpreter's switch interval, so that the threads do change places.
SAMPLES_PER_SHARE = 40


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


def rows(effort: Effort) -> Iterator[Row]:
    """Measure an import, an export and a change of wrapper."""
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
