# SPDX-License-Identifier: Apache-2.0
"""Queues of rows, which are put in and taken out in batches of other sizes.

Follows caffe2/queue/rebatching_queue.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from bridge.c10 import TypeMeta
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.datasets.columns import (
    Column,
    column_of,
    joined,
    put_column,
    row_of,
)


class RebatchingQueue:
    """Up to `capacity` rows, each a tuple of `n_blobs` tensors."""

    def __init__(self, capacity: int = 1, n_blobs: int = 1) -> None:
        self.n_blobs = n_blobs
        self._capacity = capacity
        self._rows: deque[tuple[Column, ...]] = deque()
        self._closed = False
        self._condition = threading.Condition()

    def put(self, rows: Sequence[tuple[Column, ...]]) -> bool:
        """Add rows in order, waiting for room; return whether all could be added.

        They cannot once the queue is closed.
        """
        for row in rows:
            with self._condition:
                self._condition.wait_for(lambda: self._closed or len(self._rows) < self._capacity)
                if self._closed:
                    return False
                self._rows.append(row)
                self._condition.notify_all()
        return True

    def take(self, count: int) -> list[tuple[Column, ...]]:
        """Return `count` rows, waiting for them; fewer where the queue is closed."""
        found: list[tuple[Column, ...]] = []
        while len(found) < count:
            with self._condition:
                self._condition.wait_for(lambda: self._closed or self._rows)
                if not self._rows:
                    break
                found.append(self._rows.popleft())
                self._condition.notify_all()
        return found

    def close(self) -> None:
        """Close the queue: the rows in it can be taken, and no operator waits."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()


TypeMeta.Register(RebatchingQueue)


@procedure("CreateRebatchingQueue", inputs="0", outputs="1", gradient="none")
def create_rebatching_queue(op: TorchOperator) -> None:
    """Create a queue of `capacity` (1) rows of `num_blobs` (1) tensors."""
    capacity, n = op.GetSingleArgument("capacity", 1), op.GetSingleArgument("num_blobs", 1)
    require(capacity > 0 and n >= 0, f"The capacity and the tensors cannot be {capacity}, {n}.")
    op.OutputBlob(0).Reset(RebatchingQueue(capacity, n))


@procedure("EnqueueRebatchingQueue", inputs="2-*", outputs="0", gradient="none", effects=True)
def enqueue_rebatching_queue(op: TorchOperator) -> bool:
    """Add the inputs after the queue as a row, with `enqueue_batch` each of their rows.

    Waits for room. Raises EnforceNotMet: the queue is closed, or the numbers differ.
    """
    queue = op.Input(0, RebatchingQueue)
    given = [op.Input(i) for i in range(1, op.InputSize())]
    require(
        len(given) == queue.n_blobs,
        f"The queue has {queue.n_blobs} tensors per row, and {len(given)} are given.",
    )
    if not op.GetSingleArgument("enqueue_batch", False):
        return bool(queue.put([tuple(row_of(one).kept() for one in given)]))
    inputs = [column_of(one, f"Input {i}") for i, one in enumerate(given, 1)]
    counts = {len(one) for one in inputs}
    require(len(counts) == 1, f"The inputs have {sorted(counts)} rows.")
    rows = [tuple(one.rows(i, 1).kept() for one in inputs) for i in range(len(inputs[0]))]
    return bool(queue.put(rows))


@procedure("DequeueRebatchingQueue", inputs="1", outputs="1-*", gradient="none", effects=True)
def dequeue_rebatching_queue(op: TorchOperator) -> bool:
    """Take `num_elements` (1) rows, each output the tensors of one kind with a new dimension.

    Waits for them; a closed queue gives those it has. Raises EnforceNotMet: it has none, or the
    rows have different sizes.
    """
    queue = op.Input(0, RebatchingQueue)
    require(
        op.OutputSize() == queue.n_blobs,
        f"The queue has {queue.n_blobs} tensors per row, and there are {op.OutputSize()} outputs.",
    )
    rows = queue.take(op.GetSingleArgument("num_elements", 1))
    if not rows:
        return False
    for o, column in enumerate([joined(list(one)) for one in zip(*rows, strict=True)]):
        put_column(op, o, column)
    return True


@procedure("CloseRebatchingQueue", inputs="1", outputs="0", gradient="none", effects=True)
def close_rebatching_queue(op: TorchOperator) -> None:
    """Close the queue: no operator waits for it from now on."""
    op.Input(0, RebatchingQueue).close()
