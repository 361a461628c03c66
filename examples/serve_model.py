# SPDX-License-Identifier: Apache-2.0
"""A server holds one model; each worker attaches it by its name, and sees when it is updated."""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any

import numpy as np

import bridge

LAYERS, WORKERS = 20, 3
NAME = f"served-model-{os.getpid()}"


def serve(name: str, updated: Any, end: Any) -> None:
    """Hold the model, and update it in place once."""
    weights = {f"layer{i}": {"weight": np.ones((64, 64), "float32")} for i in range(LAYERS)}
    with bridge.share(weights, name=name) as shared:
        updated.wait()
        for layer in shared.value.values():
            layer["weight"].numpy()[...] = 2.0
        updated.clear()
        end.wait()


def work(name: str, number: int, step: Any, answers: Any) -> None:
    """Attach the model, and use it before and after the update."""
    model = bridge.attach(name, timeout=60)
    begin = time.perf_counter()
    model = bridge.attach(name)
    microseconds = (time.perf_counter() - begin) * 1e6
    x = np.ones(64, "float32")
    answers.put(
        (number, "before", float(model["layer3"]["weight"].numpy().dot(x)[0]), microseconds)
    )
    step.wait()
    answers.put((number, "after", float(model["layer3"]["weight"].numpy().dot(x)[0]), 0.0))


def main() -> None:
    """Start all, and compare the answers."""
    context = multiprocessing.get_context("spawn")
    updated, end, step = context.Event(), context.Event(), context.Event()
    answers = context.SimpleQueue()
    server = context.Process(target=serve, args=(NAME, updated, end))
    workers = [
        context.Process(target=work, args=(NAME, number, step, answers))
        for number in range(WORKERS)
    ]
    for process in (server, *workers):
        process.start()
    first = [answers.get() for _ in workers]
    assert {(when, value) for _, when, value, _ in first} == {("before", 64.0)}
    updated.set()
    while updated.is_set():
        time.sleep(0.001)
    step.set()
    second = [answers.get() for _ in workers]
    assert {(when, value) for _, when, value, _ in second} == {("after", 128.0)}
    end.set()
    for process in (server, *workers):
        process.join()
    print(f"{LAYERS} layers attached in {min(one[3] for one in first):.0f} µs")


if __name__ == "__main__":
    main()
