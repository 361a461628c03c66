# SPDX-License-Identifier: Apache-2.0
"""Queues of blobs between threads.

Contents are swapped, not copied: after it was enqueued, a blob holds the old contents of the slot
before. Follows caffe2/queue/blobs_queue.cc and queue_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.blob_table import find_blob, find_or_create
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.datasets.append import append_rows
from bridge.caffe2.operators.datasets.columns import column_of, require_alike

# The queues that threads wait for, by the ident of the thread.
_waiting: dict[int, BlobsQueue] = {}


class BlobsQueue:
    """A ring of slots with several blobs each, which are blobs of the workspace.

    `condition` guards `closed`, and `reader` and `writer`, which count records.
    """

    def __init__(self, places: list[list[Blob]] | None = None, n_blobs: int = 1) -> None:
        self.places = places or []
        self.n_blobs = n_blobs
        self.reader = 0
        self.writer = 0
        self.closed = False
        self.condition = threading.Condition()

    def close(self) -> None:
        """Close the queue: remaining records can be read, free slots filled, without waiting.

        Waiting threads continue without having read or written.
        """
        with self.condition:
            self.closed = True
            self.condition.notify_all()

    def write(self, blobs: list[Blob]) -> bool:
        """Enqueue the contents of blobs once a slot is free; False: closed, and none is free."""
        with self.condition:
            self._wait(lambda: self.closed or self._has_room())
            if not self._has_room():
                return False
            self._swap(self.writer, blobs)
            self.writer += 1
            self.condition.notify_all()
        return True

    def read(self, blobs: list[Blob], timeout: float = 0.0) -> bool:
        """Dequeue a record into blobs once there is one; False: closed, or a timeout.

        `timeout` is in seconds; 0 waits forever.
        """
        with self.condition:
            self._wait(lambda: self.closed or self._has_record(), timeout or None)
            if not self._has_record():
                return False
            self._swap(self.reader, blobs)
            self.reader += 1
            self.condition.notify_all()
        return True

    def _wait(self, ready: Callable[[], bool], timeout: float | None = None) -> None:
        """Wait for the condition until `ready` holds; `release` finds the thread meanwhile."""
        if ready():
            return
        thread = threading.get_ident()
        _waiting[thread] = self
        try:
            self.condition.wait_for(ready, timeout)
        finally:
            del _waiting[thread]

    def _has_room(self) -> bool:
        return self.writer < self.reader + len(self.places)

    def _has_record(self) -> bool:
        return self.reader < self.writer

    def _swap(self, count: int, blobs: list[Blob]) -> None:
        place = self.places[count % len(self.places)]
        for one, other in zip(place, blobs, strict=False):
            one.swap(other)


TypeMeta.Register(BlobsQueue)


def release(thread: int) -> None:
    """Close the queue that a thread waits for, if it waits for one; `thread` is its ident."""
    queue = _waiting.get(thread)
    if queue is not None:
        queue.close()


@procedure("CreateBlobsQueue", ("cpu", "cuda"), inputs="0", outputs="1", gradient="none")
def create_blobs_queue(op: TorchOperator) -> None:
    """Create a queue of `capacity` (1) records of `num_blobs` (1) blobs.

    Its slots are the blobs output_0_0, ...; with `enforce_unique_name` they must not exist.
    """
    capacity, n = op.GetSingleArgument("capacity", 1), op.GetSingleArgument("num_blobs", 1)
    fits = capacity >= 0 and n >= 0
    require(fits, f"capacity and num_blobs must not be negative: {capacity}, {n}.")
    fields = op.GetRepeatedArgument("field_names")
    require(len(fields) in (0, n), f"There are {len(fields)} field_names, but {n} blobs.")
    name, workspace = op._definition.outputs[0], op._workspace
    names = [[f"{name}_{i}_{j}" for j in range(n)] for i in range(capacity)]
    if op.GetSingleArgument("enforce_unique_name", False):
        known = [one for row in names for one in row if find_blob(workspace, one)]
        require(not known, f"Blobs of the queue exist already: {known[:3]}.")
    places = [[find_or_create(workspace, one) for one in row] for row in names]
    op.OutputBlob(0).Reset(BlobsQueue(places, n))


class _OfQueue(TorchOperator):
    """An operator on queues, the inputs or the first of them."""

    _cancelled = False

    def Cancel(self) -> None:
        """Close the queues, so that no operator waits; one that does fails."""
        self._cancelled = True
        for blob in self.Inputs():
            if blob.IsType(BlobsQueue):
                blob.Get(BlobsQueue).close()

    def queue(self, more: int = 0) -> BlobsQueue:
        """Return the queue. Raises EnforceNotMet: as `checked`."""
        return self.checked(self.Input(0, BlobsQueue), more)

    def checked(self, queue: BlobsQueue, more: int) -> BlobsQueue:
        """Raise EnforceNotMet unless there is an output per blob of the queue, and `more`."""
        n = self.OutputSize() - more
        fits = n == queue.n_blobs
        require(fits, f"The queue has {queue.n_blobs} blobs per record, but there are {n} outputs.")
        return queue

    def give_status(self, done: bool) -> None:
        """Set the last output to whether the operation failed.

        Raises EnforceNotMet: the operator was cancelled meanwhile.
        """
        cancelled, self._cancelled = self._cancelled, False
        require(done or not cancelled, "The net was cancelled.")
        self.put_value(self.OutputSize() - 1, not done, c10.bool)


_of_queue = functools.partial(procedure, devices=("cpu", "cuda"), base=_OfQueue, gradient="none")


@_of_queue("EnqueueBlobs", inputs="2-*", outputs="1-*", inplace="1>0*!")
def enqueue_blobs(op: _OfQueue) -> bool:
    """Enqueue the contents of the inputs after the queue; they are the outputs, too.

    Waits for a free slot. Raises EnforceNotMet: the queue is closed and full.
    """
    return op.queue().write(op.Outputs())


@_of_queue("SafeEnqueueBlobs", inputs="2-*", outputs="2-*", inplace="1>0*!")
def safe_enqueue_blobs(op: _OfQueue) -> None:
    """EnqueueBlobs with a last output: whether it failed because the queue is closed."""
    op.give_status(op.queue(1).write(op.Outputs()[:-1]))


@_of_queue("DequeueBlobs", inputs="1", outputs="1-*")
def dequeue_blobs(op: _OfQueue) -> bool:
    """Dequeue the next record, waiting for one.

    Raises EnforceNotMet: the queue is closed and empty, or `timeout_secs` (0: none) are over.
    """
    return op.queue().read(op.Outputs(), op.GetSingleArgument("timeout_secs", 0.0))


@register_operator("SafeDequeueBlobs", ("cpu", "cuda"), inputs="1", outputs="2-*", gradient="none")
class SafeDequeueBlobs(_OfQueue):
    """Dequeue `num_records` (1) records, concatenated; the last output: whether none came."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._records = self.GetSingleArgument("num_records", 1)
        require(self._records > 0, f"num_records must be at least 1, not {self._records}.")

    def RunOnDevice(self) -> None:
        queue = self.queue(1)
        if self._records == 1:
            self.give_status(queue.read(self.Outputs()[:-1]))
            return
        blobs = [Blob() for _ in range(queue.n_blobs)]
        done = 0
        while done < self._records and queue.read(blobs):
            for o, blob in enumerate(blobs):
                self._append(o, blob.Get(c10.tensor), done == 0)
            done += 1
        self.give_status(done > 0)

    def _append(self, o: int, tensor: Any, first: bool) -> None:
        out = self.Output(o)
        if first:
            out.CopyFrom(tensor)
            return
        more = column_of(tensor, f"Column {o}")
        require_alike(more, out.dtype(), out.sizes())
        append_rows(out, more)


@_of_queue("CloseBlobsQueue", inputs="1", outputs="0")
def close_blobs_queue(op: _OfQueue) -> None:
    """Close the queue: no operator waits for it from now on."""
    op.Input(0, BlobsQueue).close()


@register_operator("WeightedSampleDequeueBlobs", inputs="1-*", outputs="2-*", gradient="none")
class WeightedSampleDequeueBlobs(_OfQueue):
    """Dequeue a record of one of the queues, drawn by `weights` (all equal).

    The last output is whether none came. Output `table_idx_blob` (-1: none) is the index of the
    queue.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._place = self.GetSingleArgument("table_idx_blob", -1)
        require(self._place < self.OutputSize() - 1, f"There is no output {self._place}.")
        weights = self.GetRepeatedArgument("weights", [1.0] * self.InputSize())
        fits = len(weights) == self.InputSize()
        require(fits, f"There are {self.InputSize()} queues, but {len(weights)} weights.")
        fits = min(weights) >= 0 and sum(weights) > 0
        require(fits, f"The weights must not be negative, and not all 0: {weights}.")
        self._weights = torch.tensor(weights, dtype=torch.float32, device="cpu")

    def RunOnDevice(self) -> None:
        chosen = int(torch.multinomial(self._weights, 1))
        done = self.checked(self.Input(chosen, BlobsQueue), 1).read(self.Outputs()[:-1])
        if self._place >= 0:
            self.Output(self._place, [1], c10.int32).mutable_data()[:] = chosen
        self.give_status(done)
