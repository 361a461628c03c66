# SPDX-License-Identifier: Apache-2.0
"""Workers make batches with JAX for a trainer in torch; nothing is copied on the way."""

from __future__ import annotations

import multiprocessing
from typing import Any

import bridge

BATCHES, WORKERS, SIZE = 8, 2, 1000


def work(numbers: Any, batches: Any, received: Any) -> None:
    """Make a batch for each number that comes, until it is None."""
    import jax.numpy as jnp

    while (number := numbers.get()) is not None:
        x = jnp.full((SIZE, 3), float(number))
        batches.put(bridge.share({"x": x, "y": x.sum(axis=1), "number": number}))
    batches.put(None)
    received.wait()  # the sender of a batch lives until it has arrived


def main() -> None:
    """Start the workers, and add up what they made."""
    import torch

    context = multiprocessing.get_context("spawn")
    numbers, batches = context.Queue(), context.Queue()
    received = context.Event()
    arguments = (numbers, batches, received)
    workers = [context.Process(target=work, args=arguments) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for number in [*range(BATCHES), *[None] * WORKERS]:
        numbers.put(number)
    total, ended, seen = torch.zeros(3), 0, set()
    while ended < WORKERS:
        batch = batches.get()
        if batch is None:
            ended += 1
            continue
        x = bridge.to_torch(batch.value["x"], writable=True)  # promised: it only reads
        assert bridge.shares_memory(x, batch.value["x"])
        total += x.sum(dim=0)
        seen.add(batch.value["number"])
        batch.close()
    received.set()
    for worker in workers:
        worker.join()
    assert seen == set(range(BATCHES))
    assert total.tolist() == [float(SIZE * sum(range(BATCHES)))] * 3
    print(f"{len(seen)} batches, {total.tolist()}")


if __name__ == "__main__":
    main()
