# SPDX-License-Identifier: Apache-2.0
"""Databases that operators read tensors from, record by record, repeatedly.

Follows caffe2/core/db.h, caffe2/operators/create_db_op.h, tensor_protos_db_input.h and
caffe2/queue/blobs_queue_db.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.object_messages import tensor_of
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.files.databases import open_reader
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.datasets.blobs_queue import BlobsQueue
from bridge.caffe2.operators.datasets.columns import Column, joined, put_column, row_of


class DBReader:
    """A source of values, one record after another."""

    def read(self) -> bytes:
        """Return the next value. Raises EnforceNotMet: there is none."""
        raise EnforceNotMet("The reader was not opened.")


class FileReader(DBReader):
    """The records of a file, repeated from the first one at the end.

    Of `shards` only every record i with i % shards == shard is read. Threads may share it.
    """

    def __init__(self, db_type: str, path: str, shards: int = 1, shard: int = 0) -> None:
        require(0 <= shard < shards, f"There is no shard {shard} of {shards}.")
        self.db_type, self.path = db_type, path
        self._source = db_type, path, shards, shard
        self._lock = threading.Lock()
        self._values = _values(*self._source)
        self._next: bytes | None = next(self._values, None)
        require(self._next is not None, f"{path!r} has no record for shard {shard} of {shards}.")

    def read(self) -> bytes:
        """Return the next value."""
        with self._lock:
            value = self._next
            if value is None:
                self._values = _values(*self._source)
                value = next(self._values, None)
            if value is None:
                raise EnforceNotMet(f"{self._source[1]!r} no longer has records.")
            self._next = next(self._values, None)
        return value


# No method: its generator would keep the reader, and the reader keeps it, so that the file would
# stay open until Python looks for cycles.
def _values(db_type: str, path: str, shards: int, shard: int) -> Iterator[bytes]:
    with open_reader(db_type, path) as db:
        for i, record in enumerate(db.records()):
            if i % shards == shard:
                yield record.read()


class QueueReader(DBReader):
    """The strings in blob number `place` of the records of a queue."""

    def __init__(self, queue: BlobsQueue, place: int, timeout: float) -> None:
        self._queue = queue
        self._place = place
        self._timeout = timeout

    def read(self) -> bytes:
        """Return the next value. Raises EnforceNotMet: the queue is closed, or a timeout."""
        blobs = [Blob() for _ in range(self._queue.n_blobs)]
        done = self._queue.read(blobs, self._timeout)
        require(done, "No record arrived from the queue in time, or the queue is closed.")
        blob = blobs[self._place]
        if blob.IsType(c10.string):
            return blob.Get(c10.string)
        require(
            blob.IsType(c10.tensor), "The blob in the queue holds neither a string nor a tensor."
        )
        items = blob.Get(c10.tensor).data(c10.string)
        require(len(items) > 0, "The tensor in the queue is empty.")
        return bytes(items[0])


for _class in (DBReader, FileReader, QueueReader):
    TypeMeta.Register(_class)


@procedure("CreateDB", ("cpu", "cuda"), inputs="0", outputs="1", gradient="none")
def create_db(op: TorchOperator) -> None:
    """Create a reader of the database `db` of type `db_type` (leveldb, which is not available).

    Arguments: `num_shards` (1) and `shard_id` (0) select a part of the records.
    """
    path = op.GetSingleArgument("db", "")
    require(bool(path), "The argument db, the path of the database, is missing.")
    reader = FileReader(
        op.GetSingleArgument("db_type", "leveldb"),
        path,
        op.GetSingleArgument("num_shards", 1),
        op.GetSingleArgument("shard_id", 0),
    )
    op.OutputBlob(0).Reset(reader)


@procedure("CreateBlobsQueueDB", inputs="1", outputs="1", gradient="undefined")
def create_blobs_queue_db(op: TorchOperator) -> None:
    """Create a reader of blob number `value_blob_index` (-1) of the queue in input 0.

    Arguments: `timeout_secs` (0: none); `key_blob_index` (-1) is ignored.
    """
    queue = op.Input(0, BlobsQueue)
    place = op.GetSingleArgument("value_blob_index", -1)
    require(0 <= place < queue.n_blobs, f"The queue has no blob {place}.")
    timeout = op.GetSingleArgument("timeout_secs", 0.0)
    op.OutputBlob(0).Reset(QueueReader(queue, place, timeout))


@register_operator(
    "TensorProtosDBInput", ("cpu", "cuda"), inputs="1", outputs="1-*", gradient="none"
)
class TensorProtosDBInput(TorchOperator):
    """The tensors of the next record of a reader, or of `batch_size` records, stacked.

    A record is a TensorProtos message with one tensor per output.
    """

    def RunOnDevice(self) -> None:
        reader = self._reader()
        batch = self.GetSingleArgument("batch_size", 0)
        require(batch >= 0, f"batch_size must not be negative: {batch}.")
        items = [self._record(reader) for _ in range(batch or 1)]
        columns = [joined(list(one)) for one in zip(*items, strict=True)]
        for o, column in enumerate(columns):
            if batch == 0:
                column = Column(column.dtype, column.sizes[1:], column.items)
            put_column(self, o, column)

    def _reader(self) -> DBReader:
        for kind in (FileReader, QueueReader):
            if self.InputIsType(0, kind):
                return self.Input(0, kind)
        raise EnforceNotMet("Input 0 is not a reader of a database; use CreateDB to create one.")

    def _record(self, reader: DBReader) -> list[Column]:
        """Return the tensors of a record, each as one row."""
        protos = caffe2_pb2().TensorProtos.FromString(reader.read()).protos
        require(
            len(protos) == self.OutputSize(),
            f"A record has {len(protos)} tensors, but there are {self.OutputSize()} outputs.",
        )
        return [row_of(tensor_of(message)) for message in protos]
